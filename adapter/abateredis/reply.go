package abateredis

import (
	"strconv"
	"strings"
	"time"

	"github.com/abate-go/abate/policy/idempotency"
)

// taken is the answer of take.lua.
type taken struct{ tokens, left int64 }

// parseTaken checks an answer of take.lua against what was asked. What is left is least at least: below 0 if debts were
// paid.
func parseTaken(v any, need, want, least, burst int64) (taken, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) != 2 {
		return taken{}, errReply
	}
	tokens, ok1 := parts[0].(int64)
	left, ok2 := parts[1].(int64)
	if !ok1 || !ok2 || tokens < 0 || tokens > want || tokens > 0 && tokens < need || left < least || left > burst {
		return taken{}, errReply
	}
	return taken{tokens, left}, nil
}

func parseCount(v any, least, most int64) (int64, error) {
	n, ok := v.(int64)
	if !ok || n < least || n > most {
		return 0, errReply
	}
	return n, nil
}

// parseBegun reads an answer of begin.lua.
func parseBegun(v any) (idempotency.Begun, error) {
	parts, ok := v.([]any)
	if !ok || len(parts) == 0 {
		return idempotency.Begun{}, errReply
	}
	state, _ := parts[0].(string)
	switch {
	case state == "mismatch" && len(parts) == 1:
		return idempotency.Begun{State: idempotency.Mismatch}, nil
	case state == "running" && len(parts) == 2:
		left, err := parseCount(parts[1], 1, int64(1<<63-1)/int64(time.Microsecond))
		return idempotency.Begun{State: idempotency.Running, Lease: time.Duration(left) * time.Microsecond}, err
	case state == "replay" && len(parts) == 2:
		answer, ok := parts[1].(string)
		if !ok {
			return idempotency.Begun{}, errReply
		}
		response, err := idempotency.ParseResponse([]byte(answer))
		return idempotency.Begun{State: idempotency.Replay, Response: response}, err
	case state == "run" && len(parts) == 3:
		text, _ := parts[1].(string)
		token, err := strconv.ParseUint(text, 10, 64)
		over, ok := parts[2].(string)
		if err != nil || !ok || over != "0" && over != "1" {
			return idempotency.Begun{}, errReply
		}
		return idempotency.Begun{State: idempotency.Run, Token: token, TakenOver: over == "1"}, nil
	}
	return idempotency.Begun{}, errReply
}

// finding is what an instance reports to the others: it has opened its breaker for guard, for wait.
type finding struct {
	instance, guard string
	wait            time.Duration
}

// maxName is the longest name of a guard that is published.
const maxName = 500

// message is a finding as text.
func (f finding) message() string {
	return f.instance + " " + strconv.FormatInt(f.wait.Milliseconds(), 10) + " " + f.guard
}

// parseFinding reads a message. Anybody may have sent it.
func parseFinding(message string) (finding, bool) {
	instance, rest, ok1 := strings.Cut(message, " ")
	wait, guard, ok2 := strings.Cut(rest, " ")
	ms, err := strconv.ParseUint(wait, 10, 32)
	if !ok1 || !ok2 || err != nil || instance == "" || guard == "" || len(guard) > maxName {
		return finding{}, false
	}
	return finding{instance, guard, time.Duration(ms) * time.Millisecond}, true
}
