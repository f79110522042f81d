package veth

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maker identifies a process for as long as the host runs: a pid alone comes
// round again.
type maker struct {
	PID   int
	Start uint64 // field 22 of /proc/PID/stat, clock ticks after boot
}

func self() (maker, error) {
	pid := os.Getpid()
	start, err := startTime(pid)
	return maker{pid, start}, err
}

// alive says whether the process still runs. One that cannot be read for any
// other reason than being gone counts as alive: nothing of it is removed.
func (m maker) alive() bool {
	start, err := startTime(m.PID)
	if errors.Is(err, os.ErrNotExist) {
		return false
	}
	return err != nil || start == m.Start
}

func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStartTime(string(b))
}

// parseStartTime reads field 22 of /proc/PID/stat. Field 2 is the command in
// parentheses and may hold spaces and parentheses itself. A process that has
// ended and waits for its parent to look (state Z or X, field 3) is gone:
// os.ErrNotExist.
func parseStartTime(stat string) (uint64, error) {
	i := strings.LastIndexByte(stat, ')')
	if i < 0 {
		return 0, errors.New("process status: no command field")
	}
	f := strings.Fields(stat[i+1:])
	const field = 22 - 3 // f[0] is field 3
	if len(f) <= field {
		return 0, fmt.Errorf("process status: %d fields, want more than %d", len(f)+2, field+2)
	}
	if f[0] == "Z" || f[0] == "X" {
		return 0, os.ErrNotExist
	}
	return strconv.ParseUint(f[field], 10, 64)
}

// mark is what a lab's ifalias says.
type mark struct {
	maker
	Keep bool
}

// String is the ifalias.
func (m mark) String() string {
	return fmt.Sprintf("linerate pid=%d start=%d keep=%t", m.PID, m.Start, m.Keep)
}

func (l *Lab) alias() (string, error) {
	me, err := self()
	return mark{me, l.cfg.Keep}.String(), err
}

// parseMark reads what mark.String writes; later fields it does not know are
// left alone.
func parseMark(alias string) (m mark, ok bool) {
	f := strings.Fields(alias)
	if len(f) == 0 || f[0] != "linerate" {
		return mark{}, false
	}
	var havePID, haveStart, haveKeep bool
	for _, kv := range f[1:] {
		k, v, _ := strings.Cut(kv, "=")
		var err error
		switch k {
		case "pid":
			m.PID, err = strconv.Atoi(v)
			havePID = err == nil && m.PID > 0
		case "start":
			m.Start, err = strconv.ParseUint(v, 10, 64)
			haveStart = err == nil
		case "keep":
			m.Keep, err = strconv.ParseBool(v)
			haveKeep = err == nil
		}
	}
	return m, havePID && haveStart && haveKeep
}
