package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// checkFile refuses the file of a flag that could not be written, before
// anything runs.
func checkFile(flag, path string) error {
	if path == "" {
		return nil
	}
	to, err := os.Stat(path)
	switch {
	case err == nil && to.IsDir():
		return &usageError{fmt.Sprintf("%s %s is a directory", flag, path), flag + " " + filepath.Join(path, "run.json")}
	case err == nil && !to.Mode().IsRegular():
		err = unix.Access(path, unix.W_OK)
	case err == nil || errors.Is(err, os.ErrNotExist):
		err = unix.Access(dirOf(path), unix.W_OK|unix.X_OK)
	}
	if err != nil {
		return fmt.Errorf("%s %s cannot be written: %w", flag, path, cause(err))
	}
	return nil
}

// cause strips the path that os errors carry.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// dirOf is where the file itself lies, or will lie, whatever links lead to it.
func dirOf(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	} else if to, err := os.Readlink(path); err == nil && filepath.IsAbs(to) {
		path = to
	} else if err == nil {
		path = filepath.Join(filepath.Dir(path), to)
	}
	return filepath.Dir(path)
}

// writeFile writes the document beside its place and moves it there, so that
// no reader sees half of it. What is no plain file, such as /dev/stderr or a
// link to nowhere yet, is written to and stays what it is.
func writeFile(path string, write func(io.Writer) error) error {
	if to, err := os.Lstat(path); err == nil && !to.Mode().IsRegular() {
		real, err := filepath.EvalSymlinks(path)
		if to, serr := os.Stat(path); err != nil || serr != nil || !to.Mode().IsRegular() {
			return writeThrough(path, write)
		}
		path = real
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".linerate-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name())
	err = fill(f, write)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// fill writes the document and closes the file.
func fill(f *os.File, write func(io.Writer) error) error {
	err := write(f)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}

func writeThrough(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return fmt.Errorf("write %s: %w", path, cause(err))
	}
	err = write(f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
