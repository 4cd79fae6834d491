package lint_test

import (
	"testing"

	"github.com/abate-go/abate/lint"
)

func TestARouteForRequestsWithAKeyMayRepeatThem(t *testing.T) {
	for other, want := range map[string]int{"headers x-idempotency-key": 0, "port 80, header Idempotency-Key": 0,
		"no header idempotency-key": 1, "withoutHeaders idempotency-key": 1, "query parameter idempotency-key": 1,
		"headers x-user": 1} {
		form := call(nobody, `match: {other: "`+other+`"}, `+on("2", "503"))
		if got := of("F301", lint.Run(parse(t, form), lint.Options{})); len(got) != want {
			t.Errorf("%q: %d findings of F301, want %d", other, len(got), want)
		}
	}
}
