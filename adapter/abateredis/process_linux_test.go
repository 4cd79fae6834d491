package abateredis_test

import "syscall"

// diesWithUs has a process end when the test does, however that ends.
func diesWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
