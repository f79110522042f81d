package nic

func vethPlaces(r Role, xdp string) []place {
	switch r {
	case RoleDeviceTx:
		return []place{{stats64: "tx_packets", note: "may be derived from the peer's receive statistics"}}
	case RoleDeviceTxDropped:
		return []place{{stats64: "tx_dropped"}}
	case RoleDeviceRx:
		if xdp == "native" {
			return vethQueue("xdp_packets")
		}
		return []place{{stats64: "rx_packets", note: "derived from the peer's transmit statistics unless NAPI runs"}}
	case RoleRxQueue:
		return vethQueue("xdp_packets")
	case RoleRxDriverDrops:
		return vethQueue("drops")
	case RoleXDPDrops:
		return vethQueue("xdp_drops")
	case RoleXDPRedirect:
		return vethQueue("xdp_redirect")
	case RoleXDPTx:
		return vethQueue("xdp_tx")
	case RoleXDPTxErrors:
		return vethQueue("xdp_tx_errors")
	case RoleXDPXmit:
		return []place{{prefix: "tx_queue_", suffix: "_xdp_xmit"}}
	case RoleXDPXmitErrors:
		return []place{{prefix: "tx_queue_", suffix: "_xdp_xmit_errors"}}
	}
	return nil
}

func vethQueue(name string) []place {
	return []place{{prefix: "rx_queue_", suffix: "_" + name}}
}
