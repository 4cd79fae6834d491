package abateredis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
)

// advices say what to do about an error of Redis that begins with, or contains, a text.
var advices = []struct{ text, what string }{
	{"NOAUTH", "Redis asks for a password: set passwordFile, and username if it has users"},
	// to what has many parts, or long ones
	{"unauthenticated", "Redis asks for a password: set passwordFile, and username if it has users"},
	{"WRONGPASS", "Redis does not accept the username or the password: look at username and passwordFile"},
	{"AUTH <password> called without any password", "Redis has no password: leave passwordFile out"},
	{"NOPERM", "the user may not do this: allow it the commands that the package's documentation names, and the keys " +
		"and channels with the prefix"},
	{"READONLY", "this Redis is a replica: name its master, or let Sentinels find it (master)"},
	{"NOREPLICAS", "Redis has too few replicas to accept writes: look at min-replicas-to-write"},
	{"MISCONF", "Redis cannot save its data and accepts no writes: look at its log and its disk"},
	{"OOM", "Redis is out of memory: raise its maxmemory"},
	{"BUSY Redis is busy", "somebody's script has been running for too long: see SCRIPT KILL"},
	{"LOADING", "Redis is still loading its data"},
	{"MASTERDOWN", "this Redis is a replica that has lost its master"},
	{"CLUSTERDOWN", "the cluster has lost a part of its slots: see redis-cli cluster info"},
	{"MOVED", "this Redis is a node of a cluster: set cluster"},
	{"cluster support disabled", "this Redis is not a node of a cluster: leave cluster out"},
	{"IDONTKNOW", "the Sentinels do not know this master: look at master"},
	{"all sentinels specified", "no Sentinel knows this master: look at master and at the addresses, which must be " +
		"those of the Sentinels"},
	{"Write commands not allowed after non deterministic", "this Redis is too old: version 7 or Valkey is needed"},
	{"unknown command", "this does not know what Redis 7 knows: are the addresses those of Sentinels (then set master), " +
		"or is a proxy in between?"},
	{"WRONGTYPE", "something else has keys with this prefix: choose another one"},
	{"DB index is out of range", "Redis has no database with this number"},
	{"max number of clients", "Redis has as many clients as it takes: raise its maxclients"},
	{"invalid reply", "what answers there is not Redis: look at the address and the port, and whether it wants TLS"},
	{"can't parse", "what answers there is not Redis: look at the address and the port, and whether it wants TLS"},
	{"first record does not look like a TLS handshake", "what answers there does not speak TLS: leave tls out"},
	{"certificate", "its certificate is not accepted: look at tls and the machine's certificate authorities"},
}

// explained is an error of Redis with what to do about it.
type explained struct {
	cause error
	what  string
}

func (e *explained) Error() string { return e.what + " (" + e.cause.Error() + ")" }
func (e *explained) Unwrap() error { return e.cause }

// errReply is what a script never answers.
var errReply = errors.New("abateredis: invalid reply of a script")

// explain adds what to do about it to an error of something that had so much time.
func explain(l *link, err error, timeout time.Duration) error {
	if err == nil {
		return nil
	}
	where := "Redis at " + strings.Join(l.config.Addresses, ", ")
	said := err.Error()
	for _, a := range advices {
		if strings.Contains(said, a.text) {
			return &explained{err, where + ": " + a.what}
		}
	}
	var late net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return &explained{err, where + ": nothing listens there: is it running?"}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &late) && late.Timeout():
		return &explained{err, fmt.Sprintf("%s: no answer within the timeout of %v", where, timeout)}
	}
	return &explained{err, where}
}

// isReply reports whether Redis has answered, though with an error.
func isReply(err error, text string) bool {
	var reply redis.Error
	return errors.As(err, &reply) && strings.HasPrefix(reply.Error(), text)
}
