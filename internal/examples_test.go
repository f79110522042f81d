package internal_test

// importExamples are shown to the rules about imports.
var importExamples = []example{
	{"up", "layers", one("internal/wire/a.go", "package wire\nimport _ \"linerate/internal/frame\"\n"), "does not lie below"},
	{"sideways", "layers", one("internal/pace/a.go", "package pace\nimport _ \"linerate/internal/frame\"\n"), "does not lie below"},
	{"to the command", "layers", one("internal/trial/a.go", "package trial\nimport _ \"linerate/cmd/linerate\"\n"), "does not lie below"},
	{"unknown package", "layers", one("internal/extra/a.go", "package extra\n"), "is in no layer"},
	{"import of the unknown", "layers", one("internal/nic/a.go", "package nic\nimport _ \"linerate/internal/extra\"\n"), "does not lie below"},
	{"down in two steps", "layers", one("cmd/linerate/a.go", "package main\nimport _ \"linerate/xsk\"\n"), ""},
	{"within one part", "layers", one("internal/lab/a.go", "package lab\nimport _ \"linerate/internal/lab/veth\"\n"), ""},
	{"tests look anywhere", "layers", one("internal/wire/a_test.go", "package wire\nimport _ \"linerate/internal/frame\"\n"), ""},

	{"os", "pure", one("internal/wire/a.go", "package wire\nimport _ \"os\"\n"), "must not import os"},
	{"syscall", "pure", one("internal/pace/a.go", "package pace\nimport _ \"syscall\"\n"), "must not import syscall"},
	{"net", "pure", one("internal/frame/a.go", "package frame\nimport _ \"net\"\n"), "must not import net"},
	{"net/http", "pure", one("internal/report/a.go", "package report\nimport _ \"net/http\"\n"), "must not import net/http"},
	{"unix", "pure", one("internal/meter/a.go", "package meter\nimport _ \"golang.org/x/sys/unix\"\n"), "not one of the pure libraries"},
	{"unsafe", "pure", one("internal/budget/a.go", "package budget\nimport _ \"unsafe\"\n"), "must not import unsafe"},
	{"allowed", "pure", one("internal/frame/a.go", "package frame\nimport (\n_ \"net/netip\"\n_ \"io\"\n_ \"golang.org/x/perf/benchmath\"\n)\n"), ""},
	{"in a test", "pure", one("internal/wire/a_test.go", "package wire\nimport _ \"os\"\n"), ""},
	{"not a pure package", "pure", one("internal/nic/a.go", "package nic\nimport _ \"os\"\n"), ""},

	{"xsk stands alone", "libraries", one("xsk/a.go", "package xsk\nimport _ \"github.com/vishvananda/netlink\"\n"), "xsk must not import"},
	{"bpf", "libraries", one("bpf/a.go", "package bpf\nimport _ \"github.com/safchain/ethtool\"\n"), "bpf must not import"},
	{"ebpf elsewhere", "libraries", one("internal/trial/a.go", "package trial\nimport _ \"github.com/cilium/ebpf/link\"\n"), "belongs to bpf, engine and nic"},
	{"ebpf at home", "libraries", map[string]string{
		"bpf/a.go":               "package bpf\nimport _ \"github.com/cilium/ebpf\"\n",
		"internal/nic/a.go":      "package nic\nimport _ \"github.com/cilium/ebpf\"\n",
		"internal/lab/a_test.go": "package lab\nimport _ \"github.com/cilium/ebpf\"\n",
		"internal/nettest/a.go":  "package nettest\nimport _ \"github.com/cilium/ebpf\"\n",
	}, ""},
	{"asavie elsewhere", "libraries", one("internal/trial/a.go", "package trial\nimport _ \"github.com/asavie/xdp\"\n"), "asavie/xdp belongs to one file"},
	{"asavie twice", "libraries", map[string]string{
		"internal/engine/asavie.go": "package engine\nimport _ \"github.com/asavie/xdp\"\n",
		"internal/engine/more.go":   "package engine\nimport _ \"github.com/asavie/xdp\"\n",
	}, "internal/engine/more.go:2: asavie/xdp belongs to one file"},
	{"asavie once", "libraries", one("internal/engine/asavie.go", "package engine\nimport _ \"github.com/asavie/xdp\"\n"), ""},
	{"cgo", "libraries", one("internal/nic/a.go", "package nic\nimport \"C\"\n"), "no cgo"},

	{"nettest in the product", "users", one("internal/trial/a.go", "package trial\nimport _ \"linerate/internal/nettest\"\n"), "nettest is for _test.go files"},
	{"nettest in a test", "users", one("xsk/a_test.go", "package xsk_test\nimport _ \"linerate/internal/nettest\"\n"), ""},
	{"netns", "users", one("internal/doctor/a.go", "package doctor\nimport _ \"linerate/internal/netns\"\n"), "must not enter namespaces"},
	{"netns allowed", "users", one("internal/nic/a.go", "package nic\nimport _ \"linerate/internal/netns\"\n"), ""},
	{"method and trial", "users", one("internal/method/a_test.go", "package method\nimport _ \"linerate/internal/trial\"\n"), "method never imports trial"},

	{"second file of xsk", "unsafe", map[string]string{
		"xsk/a.go": "package xsk\nimport _ \"unsafe\"\n",
		"xsk/b.go": "package xsk\nimport _ \"unsafe\"\n",
	}, "xsk/b.go:2: unsafe belongs to one file"},
	{"one file each", "unsafe", map[string]string{
		"xsk/a.go":           "package xsk\nimport \"unsafe\"\nfunc f(b []byte) unsafe.Pointer { return unsafe.Pointer(&b[0]) }\n",
		"internal/vnic/a.go": "package vnic\nimport _ \"unsafe\"\n",
		"xsk/a_test.go":      "package xsk\nimport _ \"unsafe\"\n",
	}, ""},
	{"without a system call", "unsafe", one("internal/nic/a.go", "package nic\nimport \"unsafe\"\nfunc f(b []byte) *uint32 { return (*uint32)(unsafe.Pointer(&b[0])) }\n"), "no system call in this function"},
	{"under another name", "unsafe", one("internal/nic/a.go", "package nic\nimport u \"unsafe\"\nvar p = u.Pointer(nil)\n"), "no system call in this function"},
	{"with a system call", "unsafe", one("internal/nic/a.go", `package nic
import ("unsafe"; "golang.org/x/sys/unix")
type ifreq struct { name [16]byte; data unsafe.Pointer }
const size = unsafe.Sizeof(ifreq{})
func f(fd int, r *ifreq) { unix.Syscall(unix.SYS_IOCTL, uintptr(fd), 1, uintptr(unsafe.Pointer(r))) }
`), ""},
}

// sourceExamples are shown to the rules about what stands in a file.
var sourceExamples = []example{
	{"exit", "quiet", one("internal/nic/a.go", "package nic\nimport \"os\"\nfunc f() { os.Exit(1) }\n"), "os.Exit is for cmd"},
	{"exit under another name", "quiet", one("internal/nic/a.go", "package nic\nimport sys \"os\"\nfunc f() { sys.Exit(1) }\n"), "os.Exit is for cmd"},
	{"log", "quiet", one("xsk/a.go", "package xsk\nimport \"log\"\nfunc f() { log.Fatal(1) }\n"), "log.Fatal is for cmd"},
	{"print", "quiet", one("bpf/a.go", "package bpf\nimport \"fmt\"\nfunc f() { fmt.Println(1) }\n"), "fmt.Println is for cmd"},
	{"builtin", "quiet", one("bpf/a.go", "package bpf\nfunc f() { println(1) }\n"), "println is for nobody"},
	{"to a writer", "quiet", one("bpf/a.go", "package bpf\nimport (\"fmt\"; \"io\"; \"os\")\nfunc f(w io.Writer) { fmt.Fprintln(w, os.Getpid()) }\n"), ""},
	{"in cmd", "quiet", one("cmd/linerate/a.go", "package main\nimport (\"fmt\"; \"os\")\nfunc f() { fmt.Println(1); os.Exit(1) }\n"), ""},
	{"in a test", "quiet", one("bpf/a_test.go", "package bpf\nimport \"os\"\nfunc f() { os.Exit(1) }\n"), ""},

	{"a library", "exec", one("internal/nic/a.go", "package nic\nimport _ \"os/exec\"\n"), "os/exec belongs to"},
	{"the command", "exec", one("cmd/linerate/a.go", "package main\nimport _ \"os/exec\"\n"), "os/exec belongs to"},
	{"StartProcess", "exec", one("internal/lab/a.go", "package lab\nimport \"os\"\nvar _ = os.StartProcess\n"), "os.StartProcess starts a program"},
	{"ForkExec", "exec", one("internal/lab/a.go", "package lab\nimport \"syscall\"\nvar _ = syscall.ForkExec\n"), "syscall.ForkExec starts a program"},
	{"allowed places", "exec", map[string]string{
		"internal/lab/vm/a.go":      "package vm\nimport _ \"os/exec\"\n",
		"internal/trial/ssh.go":     "package trial\nimport _ \"os/exec\"\n",
		"internal/engine/asavie.go": "package engine\nimport _ \"os/exec\"\n",
		"internal/nic/a_test.go":    "package nic\nimport _ \"os/exec\"\n",
		"cmd/linerate/lab.go":       "package main\nimport \"syscall\"\nvar _ = syscall.Exec\n",
	}, ""},

	{"no value", "globals", one("xsk/a.go", "package xsk\nvar verbose bool\n"), "package-level variable verbose"},
	{"plain value", "globals", one("xsk/a.go", "package xsk\nvar Timeout = 2 * 1000\n"), "package-level variable Timeout"},
	{"pointer", "globals", one("xsk/a.go", "package xsk\ntype c struct{}\nvar def = &c{}\n"), "package-level variable def"},
	{"cache", "globals", one("xsk/a.go", "package xsk\nvar seen = make(map[int]bool)\n"), "package-level variable seen"},
	{"assigned in another file", "globals", map[string]string{
		"xsk/a.go": "package xsk\nvar flags = []string{\"a\"}\n",
		"xsk/b.go": "package xsk\nfunc f() { flags = nil }\n",
	}, "xsk/b.go:2: package-level variable flags is written to"},
	{"element assigned", "globals", one("xsk/a.go", "package xsk\nvar names = map[int]string{}\nfunc f() { names[1] = \"a\" }\n"), "names is written to"},
	{"address taken", "globals", one("xsk/a.go", "package xsk\nvar cfg = struct{ a int }{1}\nfunc f() *int { return &cfg.a }\n"), "cfg is written to"},
	{"table read by address", "globals", one("internal/frame/a.go", "package frame\nvar crcAt = [2]int{}\nfunc f() *[2]int { return &crcAt }\n"), ""},
	{"table written", "globals", one("internal/frame/a.go", "package frame\nvar crcAt = [2]int{}\nfunc f() { crcAt[0] = 1 }\n"), "crcAt is written to"},
	{"allowed kinds", "globals", one("cmd/linerate/a.go", `package main
import ("errors"; "io"; "regexp"; _ "embed")
var version = "dev"
var ErrGone = errors.New("gone")
var number = regexp.MustCompile("[0-9]+")
var table = [...]string{"a", "b"}
var crc = crcTable()
var _ io.Reader = (*reader)(nil)
//go:embed schema.json
var schema []byte
func f() (table int) { table = 1; crc := 2; crc++; return table }
`), ""},
	{"in a test", "globals", one("xsk/a_test.go", "package xsk\nvar update bool\n"), ""},

	{"long file", "sizes", one("xsk/a.go", "package xsk\n\nfunc f() {\n"+lines(20)+"}\n"+blank(400)), "a.go: 424 lines, the limit is 400"},
	{"too long function", "sizes", one("xsk/a.go", "package xsk\n\nfunc f() {\n"+lines(89)+"}\n"), "xsk.f has 91 lines, the limit is 90"},
	{"too long test", "sizes", one("xsk/a_test.go", "package xsk\n\nfunc f() {\n"+lines(89)+"}\n"), "xsk.f has 91 lines, the limit is 90"},
	{"long function without a reason", "sizes", one("xsk/a.go", "package xsk\n\nfunc (s *S) f() {\n"+lines(59)+"}\n"), "xsk.S.f has 61 lines: over 60 it needs a reason"},
	{"at the limit", "sizes", map[string]string{
		"xsk/a.go":      "package xsk\n\nfunc f() {\n" + lines(58) + "}\n" + blank(338),
		"xsk/a_test.go": "package xsk\n\nfunc g() {\n" + lines(88) + "}\n",
		"xsk/gen.go":    "// Code generated by x. DO NOT EDIT.\n\npackage xsk\n\nfunc h() {\n" + lines(500) + "}\n",
	}, ""},

	{"func", "docs", one("xsk/a.go", "package xsk\nfunc Open() {}\n"), "Open has no doc comment"},
	{"method", "docs", one("xsk/a.go", "package xsk\nfunc (s *Socket) Close() {}\n"), "Socket.Close has no doc comment"},
	{"type", "docs", one("xsk/a.go", "package xsk\ntype Socket struct{}\n"), "Socket has no doc comment"},
	{"type in a group", "docs", one("xsk/a.go", "package xsk\n// All.\ntype (\nSocket struct{}\n)\n"), "Socket has no doc comment"},
	{"const", "docs", one("xsk/a.go", "package xsk\nconst Max = 1\n"), "Max has no doc comment"},
	{"directive only", "docs", one("xsk/a.go", "package xsk\n\n//go:noinline\nfunc Open() {}\n"), "Open has no doc comment"},
	{"function with the name of a method", "docs", one("xsk/a.go", "package xsk\nfunc String() {}\n"), "String has no doc comment"},
	{"well known", "docs", one("xsk/a.go", "package xsk\nfunc (e *E) Error() string { return e.a }\nfunc (e *E) Unwrap() error { return e.b }\n"), ""},
	{"documented", "docs", one("xsk/a.go", `package xsk
// Open opens.
func Open() {}
// Socket is one.
type Socket struct{}
// Close closes.
func (s *Socket) Close() {}
func (h hidden) String() string { return "" }
// Sizes.
const (Max = 1; Min = 2)
var (
	ErrA = 1 // no more
)
`), ""},

	{"none", "package-docs", one("xsk/a.go", "package xsk\n"), "xsk: no package comment"},
	{"no sentence", "package-docs", one("xsk/a.go", "// Package xsk\npackage xsk\n"), "xsk: no package comment"},
	{"vague name", "package-docs", one("internal/util/a.go", "// Package util has all sorts.\npackage util\n"), `"util" says nothing`},
	{"one file says it", "package-docs", map[string]string{
		"xsk/a.go": "package xsk\n", "xsk/doc.go": "// Package xsk opens sockets.\npackage xsk\n", "internal/a_test.go": "package internal_test\n",
	}, ""},
}
