package hops

import (
	"strconv"
	"strings"
)

// Headers in which client libraries number what they send.
const (
	AWSAttempt       = "Amz-Sdk-Request"         // attempt=2; max=3
	GoogleAttempt    = "X-Goog-Api-Client"       // gccl-attempt-count/2, among other things
	StainlessRetries = "X-Stainless-Retry-Count" // from 0
	EcosystemAttempt = "X-Retry-Attempty"        // from 1, absent at first; spelled so
)

// NumberOf is AttemptOf for a request on its way out, in which also a client library may say which attempt it is: those
// of Amazon (Amz-Sdk-Request), Google (gccl-attempt-count in X-Goog-Api-Client), the ones made by Stainless
// (X-Stainless-Retry-Count), and the retry interceptor of grpc-ecosystem (X-Retry-Attempty). It allocates nothing.
func NumberOf(name, value string) (int, bool) {
	switch {
	case len(name) == len(AWSAttempt) && strings.EqualFold(name, AWSAttempt):
		return numbered(value, ';', "attempt=", 0)
	case len(name) == len(GoogleAttempt) && strings.EqualFold(name, GoogleAttempt):
		return numbered(value, ' ', "gccl-attempt-count/", 0)
	case len(name) == len(StainlessRetries) && strings.EqualFold(name, StainlessRetries):
		return numbered(value, 0, "", 1)
	case len(name) == len(EcosystemAttempt) && strings.EqualFold(name, EcosystemAttempt):
		return numbered(value, 0, "", 1)
	}
	return AttemptOf(name, value)
}

// numbered reads the number behind prefix in the first part of value that begins with it; first is added to it.
func numbered(value string, separator byte, prefix string, first int) (int, bool) {
	for more := true; more; {
		part := value
		end := -1
		if separator != 0 {
			end = strings.IndexByte(value, separator)
		}
		if more = end >= 0; more {
			part, value = value[:end], value[end+1:]
		}
		digits, ok := strings.CutPrefix(strings.Trim(part, " \t"), prefix)
		if !ok {
			continue
		}
		return number(digits, first)
	}
	return 0, false
}

// number reads up to six digits and adds first. What comes to less than 1 is none.
func number(digits string, first int) (int, bool) {
	if digits == "" || len(digits) > 6 || digits[0] == '+' || digits[0] == '-' {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if n += first; err != nil || n < 1 {
		return 0, false
	}
	return n, true
}
