package main

import (
	"errors"
	"os"
	"syscall"
)

// ipBindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of ip(7).
const ipBindAddressNoPort = 24

// portLater makes a socket that is bound to a source address choose its port when it connects, so that the port need
// not be free towards all addresses.
func portLater(_, _ string, c syscall.RawConn) error {
	var err error
	failed := c.Control(func(fd uintptr) {
		err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort, 1))
	})
	return errors.Join(failed, err)
}
