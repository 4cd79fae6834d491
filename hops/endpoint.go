package hops

import (
	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/balance"
)

// EndpointResult is what the class of an attempt's outcome says of the endpoint that it was sent to. It is the one
// table of that, for the proxy and the simulator.
func EndpointResult(c abate.Class) balance.Result {
	switch c {
	case abate.Success:
		return balance.Success
	case abate.Failure, abate.Overload:
		return balance.Failure
	}
	return balance.Neutral
}
