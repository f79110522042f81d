package xsk

import "golang.org/x/sys/unix"

// ReadZeroCopied tells whether any bound AF_XDP socket, also one of another
// library, is in zero-copy mode (XDP_OPTIONS). Errors: *Error.
func ReadZeroCopied(fd int) (bool, error) {
	var opts xdpOptions
	if _, errno := getOption(fd, unix.XDP_OPTIONS, &opts); errno != 0 {
		return false, newError("read options", nil, errno)
	}
	return opts.Flags&unix.XDP_OPTIONS_ZEROCOPY != 0, nil
}
