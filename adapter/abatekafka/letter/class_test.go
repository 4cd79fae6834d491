package letter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/adapter/abatekafka/letter"
)

type named struct{ class string }

func (n named) Error() string { return "named" }
func (n named) Class() string { return n.class }

type traced struct{ trace string }

func (e traced) Error() string { return "traced" }
func (e traced) Trace() string { return e.trace }

// stacked prints its stack as errors of github.com/pkg/errors do.
type stacked struct{ stack string }

func (e stacked) Error() string { return "stacked" }
func (e stacked) Format(s fmt.State, verb rune) {
	fmt.Fprint(s, "stacked")
	if s.Flag('+') {
		fmt.Fprint(s, e.stack)
	}
}

// broken is what a typed nil pointer does.
type broken struct{ err error }

func (b *broken) Error() string { return b.err.Error() }
func (b *broken) Unwrap() error { return b.err }

func TestClassIsTheInnermostTypeOrWhatTheErrorSays(t *testing.T) {
	syntax := json.Unmarshal([]byte("{"), new(int))
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""},
		{errors.New("x"), "error"},
		{fmt.Errorf("a: %w", fmt.Errorf("b: %w", errors.New("x"))), "error"},
		{fmt.Errorf("a: %w", syntax), "*json.SyntaxError"},
		{errors.Join(errors.New("x"), syntax), "error"},
		{errors.Join(syntax, errors.New("x")), "*json.SyntaxError"},
		{&url.Error{Op: "Get", URL: "u", Err: io.EOF}, "*url.Error"},
		{&url.Error{Op: "Get", URL: "u", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}, "*net.OpError"},
		{context.DeadlineExceeded, "context.deadlineExceededError"},
		{fmt.Errorf("a: %w", named{"card-declined"}), "card-declined"},
		{errors.Join(errors.New("x"), fmt.Errorf("a: %w", named{"card\ndeclined"})), "card declined"},
		{fmt.Errorf("a: %w", named{""}), "letter_test.named"},
		{abate.Permanent(syntax), "*json.SyntaxError"},
		{abate.Permanent(errors.New("x")), "error"},
		{fmt.Errorf("a: %w", &abate.FieldError{Path: "maxRetries"}), "error"},
		{&abate.Error{Reason: abate.ErrAttemptsExhausted, Attempts: 3, Err: syntax}, "*json.SyntaxError"},
		{&abate.Error{Reason: abate.ErrAttemptsExhausted, Attempts: 3, Err: errors.New("x")}, "error"},
		{&abate.Error{Reason: abate.ErrCircuitOpen}, "circuit-open"},
		{fmt.Errorf("a: %w", &abate.Error{Reason: abate.ErrDeadline}), "deadline"},
		{(*broken)(nil), "*letter_test.broken"},
	} {
		if got := letter.Class(c.err); got != c.want {
			t.Errorf("%#v: class %q, want %q", c.err, got, c.want)
		}
	}
}

func TestTextLeavesOutWhatAGuardAdds(t *testing.T) {
	inner := errors.New("connection refused")
	guarded := &abate.Error{Guard: "payments", Reason: abate.ErrAttemptsExhausted, Attempts: 3, Err: &abate.Error{
		Reason: abate.ErrDeadline, Err: inner,
	}}
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {inner, "connection refused"}, {guarded, "connection refused"},
		{&abate.Error{Guard: "payments", Reason: abate.ErrCircuitOpen}, "payments: circuit open, call refused"},
		{(*broken)(nil), "<nil>"},
	} {
		if got := letter.Text(c.err); got != c.want {
			t.Errorf("%#v: %q, want %q", c.err, got, c.want)
		}
	}
}

func TestTraceIsThatOfTheInnermostError(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {errors.New("x"), ""}, {(*broken)(nil), ""},
		{fmt.Errorf("a: %w", traced{"main.go:7"}), "main.go:7"},
		{&abate.Error{Reason: abate.ErrAttemptsExhausted, Err: traced{"main.go:7"}}, "main.go:7"},
		{fmt.Errorf("a: %w", stacked{"\nmain.charge\n\tmain.go:7"}), "stacked\nmain.charge\n\tmain.go:7"},
		{stacked{""}, ""},
	} {
		if got := letter.Trace(c.err); got != c.want {
			t.Errorf("%#v: trace %q, want %q", c.err, got, c.want)
		}
	}
}
