package postgres

import (
	"encoding/binary"
	"fmt"
	"net"
	"time"
)

// answers reports whether a server lets us in. One that is still starting refuses with an error.
func answers(port int) bool {
	conn, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return false
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return false
	}
	const hello = "user\x00abate\x00database\x00postgres\x00\x00"
	message := binary.BigEndian.AppendUint32(nil, 8+uint32(len(hello)))
	message = append(binary.BigEndian.AppendUint32(message, 3<<16), hello...) // the protocol's version, 3.0
	if _, err := conn.Write(message); err != nil {
		return false
	}
	var first [1]byte
	_, err = conn.Read(first[:])
	_, _ = conn.Write([]byte("X\x00\x00\x00\x04")) // good-bye
	return err == nil && first[0] == 'R'           // authenticated, and not 'E', an error
}
