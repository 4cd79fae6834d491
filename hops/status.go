package hops

import (
	"net/http"

	"github.com/abate-go/abate"
)

// JudgeStatus returns what the HTTP status of an answer says to the one who asked, and whether another attempt may
// find better. It is the one table of that; the one for gRPC is beside it, in code.go. Most of 4xx is the caller's
// doing: the service answered, and well.
func JudgeStatus(status int) (class abate.Class, passes bool) {
	switch status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return abate.Overload, true
	case http.StatusRequestTimeout, http.StatusInternalServerError, http.StatusBadGateway, http.StatusGatewayTimeout:
		return abate.Failure, true
	}
	if status >= 500 {
		return abate.Failure, false
	}
	return abate.Success, false
}

// ServedClass is what the status of an answer says to a gate about the service behind it. With 408 the service
// complains of its client, who was slow to send: that is no failure of the service.
func ServedClass(status int) abate.Class {
	if status == http.StatusRequestTimeout {
		return abate.Success
	}
	class, _ := JudgeStatus(status)
	return class
}

// StatusFailed reports whether an answer with this status is a failure that the one who asked may think of repeating,
// so that he has to hear if he should not.
func StatusFailed(status int) bool {
	class, _ := JudgeStatus(status)
	return class != abate.Success
}
