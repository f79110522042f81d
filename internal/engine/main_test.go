package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"linerate/internal/lab/veth"
	"linerate/internal/netns"
	"linerate/internal/nettest"
	"linerate/xsk"
)

// parentCommand makes the test binary a program that opens an asavie sender,
// prints its child's process id and then does nothing: it is there to be killed.
const parentCommand = "__parent"

// badCommand makes it a child that does not keep to the protocol.
const badCommand = "__bad"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == ChildCommand:
		exit(RunChild(context.Background(), os.Stdin, os.Stdout))
	case len(os.Args) > 2 && os.Args[1] == badCommand:
		exit(beBad(os.Args[2]))
	case len(os.Args) > 3 && os.Args[1] == parentCommand:
		exit(beParent(os.Args[2], os.Args[3]))
	}
	nettest.Main(m)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beParent(namespace, ifindex string) error {
	ns, err := netns.Open(namespace)
	if err != nil {
		return err
	}
	index, err := strconv.Atoi(ifindex)
	if err != nil {
		return err
	}
	s, err := OpenAsavieSender(testConfig(Port{Name: veth.Interface, IfIndex: index, Do: ns.Do}))
	if err != nil {
		return err
	}
	fmt.Println(s.(*asavieSender).cmd.Process.Pid)
	time.Sleep(time.Minute)
	return s.Close()
}

// beBad says what it is told to, once for every order, and otherwise nothing.
func beBad(what string) error {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		switch what {
		case "silent":
			time.Sleep(time.Minute)
		case "chatty":
			for range 1000 {
				fmt.Println(`{"Ready":true}`)
			}
		case "garbage":
			fmt.Println("garbage")
			time.Sleep(time.Minute)
		case "dies":
			return errors.New("told to die")
		}
	}
	if what == "stays" {
		time.Sleep(time.Minute)
	}
	return in.Err()
}

// testConfig is a small engine of one queue that is not pinned.
func testConfig(p Port) Config {
	return Config{Port: p, Queues: []Queue{{ID: 0, CPU: -1}}, ZeroCopy: xsk.Forbid, Chunk: 4096, MaxLen: 1514,
		Batch: 64, Budget: DefaultBudget, RingSize: 1024}
}
