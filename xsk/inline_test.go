package xsk

import (
	"os/exec"
	"strings"
	"testing"
)

// A call per frame costs as much as the work it does: what the loops of the
// engines call per frame or per batch must inline.
func TestHotMethodsInline(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, method := range []string{
		"(*producer).Reserve", "(*producer).Submit", "(*producer).NeedsWakeup",
		"(*consumer).Peek", "(*consumer).Release",
		"(*DescProducer).Set", "(*DescConsumer).Get", "(*AddrProducer).Set", "(*AddrConsumer).Get",
		"(*Socket).TxNeedsWakeup", "(*Umem).Data", "(*Umem).Chunk", "(*Umem).Base", "(*Watchdog).Due", "NowNs",
	} {
		if !strings.Contains(string(out), "can inline "+method+"\n") {
			t.Errorf("%s does not inline", method)
		}
	}
}
