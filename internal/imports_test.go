package internal_test

import (
	"fmt"
	"go/ast"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// below says, for each part of the program, which parts it may import. An arrow also reaches what lies
// further down: imports point down, never up and never sideways. A new package gets its line here first.
var below = map[string][]string{
	"cmd/linerate": {
		"internal/method", "internal/trial", "internal/doctor", "internal/tune", "internal/report",
		"internal/lab", "internal/stream", "internal/metrics", "tcpmode",
	},
	"internal/trial": {
		"internal/engine", "internal/budget", "internal/meter", "internal/pace", "internal/nic",
		"internal/doctor", "internal/tune", "internal/netns", "internal/neighbor", "internal/rss", "internal/stream",
	},
	"internal/engine": {
		"xsk", "bpf", "internal/frame", "internal/pace", "internal/meter", "internal/netns", "internal/pcap",
	},
	"tcpmode":          {"internal/meter", "internal/nic", "internal/doctor", "internal/wire"},
	"internal/method":  {"internal/wire"},
	"internal/frame":   {"internal/wire"},
	"internal/stream":  {"internal/frame", "internal/wire"},
	"internal/pcap":    {"internal/wire"},
	"internal/pace":    {"internal/wire"},
	"internal/meter":   {"internal/wire"},
	"internal/budget":  {"internal/wire"},
	"internal/report":  {"internal/budget", "internal/wire"},
	"internal/doctor":  {"internal/nic"},
	"internal/tune":    {"internal/nic"},
	"internal/nic":     {"internal/netns", "internal/wire", "internal/rss"},
	"internal/lab":     {"internal/vnic", "internal/netns"},
	"internal/metrics": {"internal/trial"},
	"internal/nettest": {
		"internal/lab", "internal/netns", "internal/nic", "internal/frame", "internal/wire", "bpf", "xsk",
	},
	"internal":          {},
	"internal/neighbor": {},
	"internal/netns":    {},
	"internal/vnic":     {},
	"internal/wire":     {},
	"internal/rss":      {},
	"xsk":               {},
	"bpf":               {},
}

// pure lists the packages that know no kernel and do no I/O of their own.
var pure = []string{
	"internal/wire", "internal/rss", "internal/frame", "internal/stream", "internal/pace", "internal/meter", "internal/budget",
	"internal/method", "internal/report",
}

// pureLibraries are the libraries, pure themselves, that pure packages may use.
var pureLibraries = []string{
	"golang.org/x/perf/benchmath", "go.yaml.in/yaml",
	"gopkg.in/yaml.v3", "gonum.org/v1/plot",
}

// onlyLibraries are the libraries a part may use where that list is closed.
var onlyLibraries = map[string][]string{
	"xsk": {"golang.org/x/sys/unix"},
	// netip apart, all that it needs is one socket.
	"internal/neighbor": {"golang.org/x/sys/unix"},
	// netlink: the only way to ask which XDP program an interface already has.
	"bpf": {"github.com/cilium/ebpf", "golang.org/x/sys/unix", "github.com/vishvananda/netlink"},
}

// mayExec matches the files that may start another program.
var mayExec = regexp.MustCompile(`^internal/lab/vm/|^internal/([a-z0-9]+/)*ssh(_[a-z]+)?\.go$|^internal/engine/asavie(_[a-z]+)?\.go$`)

// partOf gives the longest entry of below that holds the package, "" if none does.
func partOf(p string) string {
	best := ""
	for part := range below {
		if importsUnder(p, part) && len(part) > len(best) && (part != "internal" || p == "internal") {
			best = part
		}
	}
	return best
}

// reaches says whether the arrows lead from one part down to another.
func reaches(from, to string) bool {
	if from == to {
		return true
	}
	return slices.ContainsFunc(below[from], func(next string) bool { return reaches(next, to) })
}

// checkLayers: imports point down only. Tests may look anywhere.
func checkLayers(t *tree) (bad []string) {
	for _, p := range t.pkgs {
		if partOf(p.path) == "" {
			bad = append(bad, fmt.Sprintf("%s: is in no layer: give it a line in the table `below`", p.path))
		}
	}
	t.each(func(f *file) bool { return !f.test }, func(p *pkg, f *file) {
		for _, spec := range f.syntax.Imports {
			to, ok := t.local(importPath(spec))
			if ok && partOf(p.path) != "" && !reaches(partOf(p.path), partOf(to)) {
				bad = append(bad, t.at(spec.Pos(), "%s must not import %s: it does not lie below", p.path, to))
			}
		}
	})
	return bad
}

// kernelFree says why a pure package must not import imp, "" if it may.
func kernelFree(imp string) string {
	if imp == "net/netip" {
		return ""
	}
	for _, root := range []string{"os", "syscall", "net", "unsafe", "log", "plugin"} {
		if importsUnder(imp, root) {
			return "it reaches outside the process"
		}
	}
	first, _, _ := strings.Cut(imp, "/")
	external := strings.Contains(first, ".")
	if external && !slices.ContainsFunc(pureLibraries, func(l string) bool { return importsUnder(imp, l) }) {
		return "it is not one of the pure libraries"
	}
	return ""
}

// checkPure: rule 1.
func checkPure(t *tree) (bad []string) {
	t.each(productFile, func(p *pkg, f *file) {
		if !slices.Contains(pure, p.path) {
			return
		}
		for _, spec := range f.syntax.Imports {
			if why := kernelFree(importPath(spec)); why != "" {
				bad = append(bad, t.at(spec.Pos(), "%s is pure and must not import %s: %s", p.path, importPath(spec), why))
			}
		}
	})
	return bad
}

// checkLibraries: the closed lists of libraries, and cilium/ebpf and asavie/xdp in their places (rule 2).
func checkLibraries(t *tree) (bad []string) {
	t.each(productFile, func(p *pkg, f *file) {
		allowed, closed := onlyLibraries[partOf(p.path)]
		for _, spec := range f.syntax.Imports {
			imp := importPath(spec)
			first, _, _ := strings.Cut(imp, "/")
			if closed && strings.Contains(first, ".") &&
				!slices.ContainsFunc(allowed, func(l string) bool { return importsUnder(imp, l) }) {
				bad = append(bad, t.at(spec.Pos(), "%s must not import %s: only %v", p.path, imp, allowed))
			}
		}
		spec, ok := f.find("github.com/cilium/ebpf")
		if ok && !slices.Contains([]string{"bpf", "internal/engine", "internal/nic"}, partOf(p.path)) {
			bad = append(bad, t.at(spec.Pos(), "cilium/ebpf belongs to bpf, engine and nic"))
		}
	})
	var asavie []string
	t.each(anyFile, func(_ *pkg, f *file) {
		if spec, ok := f.find("github.com/asavie/xdp"); ok {
			asavie = append(asavie, t.at(spec.Pos(), "asavie/xdp belongs to one file of internal/engine"))
			if len(asavie) > 1 || !f.within("internal/engine") {
				bad = append(bad, asavie[len(asavie)-1])
			}
		}
		if spec, ok := f.find("C"); ok {
			bad = append(bad, t.at(spec.Pos(), "no cgo: the program is one static binary"))
		}
	})
	return bad
}

// checkUsers: packages that only some may import: netns, nettest; and method, which never sees trial (rule 4).
func checkUsers(t *tree) (bad []string) {
	mayEnter := []string{"internal/netns", "internal/nic", "internal/lab", "internal/engine", "internal/trial", "cmd/linerate"}
	t.each(anyFile, func(p *pkg, f *file) {
		for _, spec := range f.syntax.Imports {
			switch to, _ := t.local(importPath(spec)); {
			case importsUnder(to, "internal/nettest") && productFile(f):
				bad = append(bad, t.at(spec.Pos(), "nettest is for _test.go files"))
			case to == "internal/netns" && productFile(f) && !slices.Contains(mayEnter, partOf(p.path)):
				bad = append(bad, t.at(spec.Pos(), "%s must not enter namespaces", p.path))
			case importsUnder(to, "internal/trial") && partOf(p.path) == "internal/method":
				bad = append(bad, t.at(spec.Pos(), "method never imports trial: it is given a func"))
			}
		}
	})
	return bad
}

// checkUnsafe: one file in xsk, one in vnic, and elsewhere only in a function that makes the system call.
func checkUnsafe(t *tree) (bad []string) {
	homes := map[string]string{}
	t.each(ownProduct, func(p *pkg, f *file) {
		spec, ok := f.find("unsafe")
		if !ok {
			return
		}
		home := partOf(p.path)
		if home != "xsk" && home != "internal/vnic" {
			bad = append(bad, unsafeOutside(t, f)...)
			return
		}
		if first, taken := homes[home]; taken {
			bad = append(bad, t.at(spec.Pos(), "unsafe belongs to one file of %s: %s", home, first))
		}
		homes[home] = f.path
	})
	return bad
}

var syscallName = regexp.MustCompile(`^(Raw)?Syscall`)

// unsafeOutside finds the uses of unsafe in functions without a system call. Sizeof and its kin harm nobody,
// and a field of a kernel struct may be a pointer.
func unsafeOutside(t *tree, f *file) (bad []string) {
	harmless := []string{"Sizeof", "Offsetof", "Alignof"}
	for _, decl := range f.syntax.Decls {
		if gen, ok := decl.(*ast.GenDecl); ok && isTypeDecl(gen) {
			continue
		}
		calls := false
		ast.Inspect(decl, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				sel, ok := call.Fun.(*ast.SelectorExpr)
				calls = calls || ok && syscallName.MatchString(sel.Sel.Name)
			}
			return true
		})
		f.uses(decl, "unsafe", func(sel *ast.SelectorExpr) {
			if !calls && !slices.Contains(harmless, sel.Sel.Name) {
				bad = append(bad, t.at(sel.Pos(), "unsafe.%s outside xsk and vnic, and no system call in this function", sel.Sel.Name))
			}
		})
	}
	return bad
}

// buildElsewhere builds packages of the module at dir for darwin: pure packages must not need Linux.
func buildElsewhere(dir string, pkgs []string) error {
	cmd := exec.Command("go", append([]string{"build"}, pkgs...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %v for darwin: %w: %s", pkgs, err, out)
	}
	return nil
}
