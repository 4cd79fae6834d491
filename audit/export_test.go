package audit

import "github.com/abate-go/abate/topology"

// Promised is the form as the changes are to make it.
func (r *Result) Promised() topology.Form { return r.fixed }
