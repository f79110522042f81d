package stream

import (
	"os"
	"path/filepath"
	"testing"

	"linerate/internal/frame"
)

// No text makes the parser panic; what it reads, the schema accepts and a
// Builder can write; and what is tagged, the receiver accepts.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("no examples: %v", err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	for _, c := range refusals {
		f.Add([]byte(c.text))
	}
	schema := compiled(f)
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse("f", text)
		if err != nil {
			return
		}
		if err := judge(schema, text); err != nil {
			t.Fatalf("the schema refuses it: %v", err)
		}
		for _, s := range file.Streams[:min(8, len(file.Streams))] {
			b := NewBuilder(s, testConfig)
			buf := make([]byte, b.MaxLen())
			check := frame.NewChecker(frame.CheckerConfig{Run: testConfig.Run})
			for _, k := range []uint64{0, 1, 2, 3, 5, 7, 1 << 40, ^uint64(0)} {
				var out frame.Checked
				n := b.Build(buf, k, k&0xffff, k)
				if check.Check(buf[:n], &out); s.Tagged() && s.wrong == 0 && out.Class != frame.ClassGood {
					t.Fatalf("frame %d is %v: %v\n%x", k, out.Class, out.Reason, buf[:n])
				}
				b.Decode(buf[:n])
				b.BuildEnd(buf, k, k, k)
			}
		}
	})
}
