package engine

import "fmt"

// OpenSender opens the sender of an engine.
func OpenSender(name Name, c Config) (Sender, error) {
	switch name {
	case XSK:
		return OpenXSKSender(c)
	case Asavie:
		return OpenAsavieSender(c)
	case Live:
		return OpenLiveSender(c)
	}
	return nil, fmt.Errorf("no engine %q to send with", name)
}

// OpenReceiver opens the receiver of an engine. Dropping in XDP needs no
// socket, whatever the engine.
func OpenReceiver(name Name, c Config, o RxOptions) (Receiver, error) {
	switch {
	case o.Drop:
		return OpenDropReceiver(c, o)
	case name == XSK:
		return OpenXSKReceiver(c, o)
	case name == Asavie:
		return OpenAsavieReceiver(c, o)
	case name == XDP:
		return OpenVerifyReceiver(c, o)
	}
	return nil, fmt.Errorf("no engine %q to receive with", name)
}

// RxBuffer is the longest frame, FCS not included, that one UMEM chunk can
// receive: the kernel keeps headroom for itself.
func RxBuffer(chunk int) int { return chunk - headroom }
