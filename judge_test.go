package abate_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/abate-go/abate"
	"github.com/abate-go/abate/policy/retry"
)

func TestJudgeTellsWhatAnErrorComesToWithoutTheRetryLists(t *testing.T) {
	boom, business := errors.New("boom"), errors.New("card declined")
	g, err := abate.New("payments", abate.Policy{
		Retry: retry.Config{MaxRetries: 3}, NeverRetryOn: []string{"error"},
		Classify: func(err error) abate.Outcome {
			if errors.Is(err, business) {
				return abate.Outcome{Class: abate.Ignored}
			}
			return abate.Outcome{Class: abate.Failure}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		err  error
		want abate.Outcome
	}{
		{nil, abate.Outcome{}},
		{boom, abate.Outcome{Class: abate.Failure, Err: boom}},
		{business, abate.Outcome{Class: abate.Ignored, Err: business}},
		{abate.Permanent(boom), abate.Outcome{Class: abate.Failure, NoRetry: true, Err: boom}},
		{abate.Ignore(boom), abate.Outcome{Class: abate.Ignored, Err: boom}},
		{abate.RetryAfter(boom, time.Second), abate.Outcome{Class: abate.Overload, RetryAfter: time.Second, Err: boom}},
		{fmt.Errorf("with words: %w", abate.Permanent(boom)), abate.Outcome{Class: abate.Failure, NoRetry: true, Err: boom}},
	} {
		if got := g.Judge(tt.err); got != tt.want {
			t.Errorf("%v: %+v, want %+v", tt.err, got, tt.want)
		}
	}
}
