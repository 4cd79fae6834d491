package kafka

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// freePorts finds two ports of loopback. They lie below those that systems give to outgoing connections, so that nobody has got them by
// accident when a broker that was killed comes back.
func freePorts() (ports, error) {
	var found []int
	for range 1000 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			continue
		}
		defer l.Close()
		if found = append(found, port); len(found) == 2 {
			return ports{clients: found[0], controller: found[1]}, nil
		}
	}
	return ports{}, fmt.Errorf("no free ports between 20000 and 32000 on 127.0.0.1")
}
