package abateredis

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

// run runs a script about one key. With Config.Replicas it comes back without an error only when so many replicas have
// what the script wrote.
func (l *link) run(ctx context.Context, client client, s *redis.Script, key string, args ...any) (
	any, error) {
	if l.config.Replicas == 0 {
		return s.Run(ctx, client, []string{key}, args...).Result()
	}
	master := client
	if c, ok := master.(*redis.ClusterClient); ok { // WAIT has no key, so the client could not know which node to ask
		node, err := c.MasterForKey(ctx, key)
		if err != nil {
			return nil, err
		}
		master = node
	}
	v, err := l.runAndWait(ctx, master, func(p redis.Pipeliner) *redis.Cmd {
		return s.EvalSha(ctx, p, []string{key}, args...)
	})
	if err != nil && redis.HasErrorPrefix(err, "NOSCRIPT") {
		v, err = l.runAndWait(ctx, master, func(p redis.Pipeliner) *redis.Cmd {
			return s.Eval(ctx, p, []string{key}, args...)
		})
	}
	if c, ok := client.(*redis.ClusterClient); ok && err != nil &&
		(redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "READONLY")) {
		c.ReloadState(ctx) // for the next attempt
	}
	return v, err
}

// errReplicas is what a step comes to that not enough replicas have confirmed. It may be there, and may be lost.
var errReplicas = errors.New("too few replicas confirmed the write in time")

// runAndWait sends the script and WAIT on one connection: WAIT waits for what its own connection has written.
func (l *link) runAndWait(ctx context.Context, c client, script func(redis.Pipeliner) *redis.Cmd) (
	any, error) {
	p := c.Pipeline()
	ran := script(p)
	waited := p.Do(ctx, "wait", l.config.Replicas, waitFor(ctx, l.config.Timeout).Milliseconds())
	_, err := p.Exec(ctx)
	if ran.Err() != nil {
		return nil, ran.Err()
	}
	if err != nil {
		return nil, err
	}
	n, err := waited.Int()
	if err == nil && n < l.config.Replicas {
		err = fmt.Errorf("%w: %d of %d", errReplicas, n, l.config.Replicas)
	}
	return ran.Val(), err
}

// waitFor is how long the server may wait: a little less than the time that is left, so that it says how many there
// were.
func waitFor(ctx context.Context, timeout time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		timeout = time.Until(end)
	}
	return max(timeout*3/4, time.Millisecond) // none would be for ever
}
