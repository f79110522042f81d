package nic

// vethPlaces says what a veth counts where (drivers/net/veth.c). Measured on
// Linux 6.18, 1,000 frames of 60 bytes sent by AF_PACKET with
// PACKET_QDISC_BYPASS or by AF_XDP in copy mode, which take the same path; A is
// the sender, B the receiver. TestVethFacts and its neighbours hold all but the
// last line against the running kernel.
//
//	B has                      A tx_packets  A tx_dropped  B rx_packets  B rx_queue_N_*
//	no program (no NAPI)       1000          0             1000          all 0
//	generic XDP, drop          1000          0             1000          all 0
//	native drop or aborted     1000          0             1000          xdp_packets 1000, xdp_drops 1000
//	native pass                1000          0             1000          xdp_packets 1000
//	native redirect, success   1000          0             1000          xdp_packets 1000, xdp_redirect 1000
//	native redirect, failing   1000          0             1000          xdp_packets 1000, drops 1000
//	XDP_TX, A without NAPI     1000          0             1000          xdp_packets 1000, xdp_tx_errors 1000
//	link down                  0             1000          0             all 0 (ENOBUFS, EBUSY in AF_XDP)
//	full ring (threaded NAPI)  taken         refused       taken         xdp_packets = taken
//	detach with n in the ring  polled        0             polled        xdp_packets = polled
//
// What follows from it:
//   - With NAPI at B, A's tx_packets *is* B's xdp_packets: a frame on the ring is
//     in neither, and one that is purged never will be. On a detach with 200
//     frames on the ring 64 were polled (and passed to the stack, the program
//     being gone) and 136 vanished with no counter moving on either side. So
//     tx_packets never proves that B received; sent = accepted by the kernel.
//   - xdp_packets counts every frame taken from the ring, whatever became of it,
//     those in drops included.
//   - A redirect that fails at once (no such target, target without
//     ndo_xdp_xmit or NAPI at its peer, AF_XDP fill ring empty, RX ring full)
//     is in drops and not in xdp_redirect. For AF_XDP the socket's statistics
//     count the very same frames: never add the two up.
//   - A redirect to another device that finds its ring full is in xdp_redirect
//     all the same; it shows at the target as tx_queue_N_xdp_xmit_errors (2,744
//     of 3,000, xdp_xmit 256) and in the target's stats64 tx_dropped and its
//     peer's rx_dropped.
//   - A program that finds no socket in an XSKMAP gets the flags it gave as
//     verdict: aborted and drop count in xdp_drops, pass only in xdp_packets.
//   - stats64 rx_dropped is drops, plus the peer's xdp_tx_errors and
//     xdp_xmit_errors, plus what the stack above threw away (unknown EtherType).
//   - Bytes: 46 for a frame of 60 through NAPI, 60 without: frames x length only.
func vethPlaces(r Role, xdp string) []place {
	switch r {
	case RoleDeviceTx:
		return []place{{stats64: "tx_packets",
			note: "may be derived from the peer: with NAPI there it is what the peer took from its ring"}}
	case RoleDeviceTxDropped:
		return []place{{stats64: "tx_dropped",
			note: "ring full or no carrier; also this end's own XDP_TX and redirects that were refused"}}
	case RoleDeviceRx:
		if xdp == "native" {
			return vethQueue("xdp_packets", "every frame taken from the ring, whatever became of it")
		}
		return []place{{stats64: "rx_packets", note: "without NAPI here it is derived from the peer's transmit count"}}
	case RoleRxQueue:
		return vethQueue("xdp_packets", "moves only with NAPI: native XDP or GRO")
	case RoleRxDriverDrops:
		return vethQueue("drops", "failed redirects and failed allocations; frames an AF_XDP socket refused are in its own statistics too")
	case RoleXDPDrops:
		return vethQueue("xdp_drops", "verdicts XDP_DROP and XDP_ABORTED")
	case RoleXDPRedirect:
		return vethQueue("xdp_redirect", "accepted by the target: an AF_XDP RX ring holds them; another device may still refuse")
	case RoleXDPTx:
		return vethQueue("xdp_tx", "")
	case RoleXDPTxErrors:
		return vethQueue("xdp_tx_errors", "the peer has no NAPI, or its ring is full")
	case RoleXDPXmit:
		return []place{{prefix: "tx_queue_", suffix: "_xdp_xmit"}}
	case RoleXDPXmitErrors:
		return []place{{prefix: "tx_queue_", suffix: "_xdp_xmit_errors", note: "redirected here and refused: ring full"}}
	}
	return nil
}

func vethQueue(name, note string) []place {
	return []place{{prefix: "rx_queue_", suffix: "_" + name, note: note}}
}
