package abatehttp_test

import (
	"testing"

	"github.com/abate-go/abate/adapter/abatehttp"
)

func TestAFailingAnswerIsAnErrorWithItsStatusAsItsType(t *testing.T) {
	e := &abatehttp.StatusError{StatusCode: 503}
	if e.ErrorType() != "503" || e.Error() != "503 Service Unavailable" {
		t.Errorf("%q, %q", e.ErrorType(), e.Error())
	}
}
