package connfail_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/internal/connfail"
)

// tree builds an error of whatever program says: each byte is an error, or takes some of those before it together.
func tree(program []byte, text string) error {
	var stack []error
	pop := func() (e error) {
		if len(stack) == 0 {
			return io.ErrNoProgress // a net.OpError around nothing panics by itself
		}
		e, stack = stack[len(stack)-1], stack[:len(stack)-1]
		return e
	}
	for _, op := range program {
		switch op % 12 {
		case 0:
			stack = append(stack, sqlError(text))
		case 1:
			stack = append(stack, redisError(text))
		case 2:
			stack = append(stack, errors.New(text))
		case 3:
			stack = append(stack, syscall.Errno(op))
		case 4:
			stack = append(stack, &net.DNSError{Err: text, IsNotFound: op > 100})
		case 5:
			stack = append(stack, fmt.Errorf("%s: %w", text, pop()))
		case 6:
			stack = append(stack, errors.Join(pop(), pop(), nil))
		case 7:
			stack = append(stack, &net.OpError{Op: "remote error", Err: pop()})
		case 8:
			stack = append(stack, &abate.Error{Guard: text, Reason: abate.ErrCircuitOpen, Err: pop()})
		case 9:
			stack = append(stack, abate.Permanent(pop()))
		case 10:
			stack = append(stack, io.EOF)
		default:
			stack = append(stack, os.NewSyscallError(text, pop()))
		}
	}
	if len(stack) == 0 {
		return nil
	}
	return pop()
}

func FuzzEveryErrorHasADecision(f *testing.F) {
	f.Add([]byte{0, 5, 2, 6}, "28P01")
	f.Add([]byte{1}, "WRONGPASS invalid")
	f.Add([]byte{2}, "Error 1045 (28000): denied")
	f.Add([]byte{2}, "Error 1045 (")
	f.Add([]byte{2}, "Error 104")
	f.Add([]byte{7, 8, 9, 11}, "")
	f.Add([]byte{4, 104, 10, 6, 6, 6}, "unknown port")
	f.Fuzz(func(t *testing.T, program []byte, text string) {
		if len(program) > 1000 {
			return
		}
		err := tree(program, text)
		rule, sign := connfail.Find(err)
		if rule.Name == "" || rule.Opening == "" || rule.Statement == "" {
			t.Fatalf("%v has no rule", err)
		}
		o := connfail.Classify(err)
		if err != nil && o.Err == nil || err == nil && o.Class != abate.Success {
			t.Fatalf("%v came to %+v", err, o)
		}
		explained := connfail.Explain(err)
		if (err == nil) != (explained == "") || strings.ContainsAny(explained, "\n\r") {
			t.Fatalf("%q is explained as %q", err, explained)
		}
		if sign != "" && !strings.Contains(explained, rule.Name) {
			t.Fatalf("%q and %q", explained, rule.Name)
		}
	})
}
