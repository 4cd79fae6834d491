//go:build !unix

package sidecar

import "os"

// leaveSignals: there are none here.
var leaveSignals []os.Signal
