package main

import (
	"fmt"
	"strings"

	"linerate/internal/netns"
	"linerate/internal/nic"
)

// endpoint is one interface the user named, opened in its namespace.
type endpoint struct {
	text string
	ns   *netns.NS
	port *nic.Port
}

// openEndpoint reads [NETNS/]IFACE and opens it. The caller closes it.
func openEndpoint(text string) (*endpoint, error) {
	if strings.Contains(text, "@") {
		return nil, &usageError{fmt.Sprintf("endpoint %s: remote endpoints are not built yet", text), "run blast on one host and sink on the other"}
	}
	space, name, ok := strings.Cut(text, "/")
	if !ok {
		space, name = "", text
	} else if i := strings.LastIndex(text, "/"); i >= 0 {
		space, name = text[:i], text[i+1:] // the namespace may be a path
	}
	if name == "" || (ok && space == "") {
		return nil, &usageError{fmt.Sprintf("endpoint %q: want [NETNS/]IFACE", text), "eth1, or lr-demo-a/lr0"}
	}
	ns, err := netns.Open(space)
	if err != nil {
		return nil, err
	}
	port, err := nic.Open(ns, name)
	if err != nil {
		ns.Close()
		return nil, err
	}
	return &endpoint{text: text, ns: ns, port: port}, nil
}

func (e *endpoint) close() {
	if e != nil {
		e.ns.Close()
	}
}

// guard refuses an interface the host cannot do without, unless the user says
// that the link is theirs to use.
func (e *endpoint) guard(own bool) error {
	if e.port.MAC == ([6]byte{}) {
		return fmt.Errorf("%s has no Ethernet address: frames cannot leave through it\n  try: an Ethernet interface, or linerate lab up x to make a pair", e.text)
	}
	if own {
		return nil
	}
	const remedy = "--i-own-this-link if you mean it"
	if yes, err := e.port.DefaultRoute(); err != nil {
		return err
	} else if yes {
		return fmt.Errorf("%s carries the default route: attaching here can cut this host off\n  try: %s", e.text, remedy)
	}
	if yes, err := e.port.CarriesSSH(); err != nil {
		return err
	} else if yes {
		return fmt.Errorf("%s carries an ssh connection: attaching here can cut it off\n  try: %s", e.text, remedy)
	}
	return nil
}
