package spring

import (
	"strings"

	"github.com/abate-go/abate/topology"
)

var (
	connection = []topology.Outcome{topology.Refused, topology.ResetUnsent, topology.ResetSent}
	anyIO      = append(connection[:3:3], topology.Hang)
	ofServer   = []topology.Outcome{topology.S500, topology.S502, topology.S503, topology.S504}
	ofClient   = []topology.Outcome{topology.S429, topology.S408, topology.S409, topology.S4xx}
	anyStatus  = append(ofServer[:4:4], ofClient...)
	ofGRPC     = []topology.Outcome{topology.Unavailable, topology.ResourceExhausted, topology.Internal,
		topology.UnknownCode,
		topology.DeadlineExceeded, topology.CancelledCode, topology.Aborted}
)

// exceptions are what the usual ones mean, by their last names. One that is not here may be thrown for anything.
var exceptions = map[string][]topology.Outcome{
	"IOException": anyIO, "UncheckedIOException": anyIO, "SocketException": connection,
	"ConnectException":         {topology.Refused},
	"HttpHostConnectException": {topology.Refused}, "UnknownHostException": {topology.Refused},
	"NoHttpResponseException": {topology.ResetSent}, "SocketTimeoutException": {topology.Hang},
	"HttpTimeoutException": {topology.Hang}, "ReadTimeoutException": {topology.Hang}, "TimeoutException": {topology.Hang},
	"ConnectTimeoutException": {topology.Refused}, "ResourceAccessException": anyIO, "WebClientRequestException": anyIO,
	"RetryableException": anyIO, "HttpServerErrorException": ofServer, "HttpClientErrorException": ofClient,
	"InternalServerError": {topology.S500}, "BadGateway": {topology.S502}, "ServiceUnavailable": {topology.S503},
	"GatewayTimeout": {topology.S504}, "TooManyRequests": {topology.S429}, "Conflict": {topology.S409},
	"RequestTimeout": {topology.S408}, "NotFound": {topology.S4xx}, "BadRequest": {topology.S4xx},
	"HttpStatusCodeException": anyStatus, "RestClientResponseException": anyStatus,
	"WebClientResponseException": anyStatus,
	"FeignException":             append(anyIO[:4:4], anyStatus...), "FeignServerException": ofServer,
	"FeignClientException":   ofClient,
	"StatusRuntimeException": ofGRPC, "CallNotPermittedException": {}, "RequestNotPermitted": {},
	"BulkheadFullException": {},
}

// meaning returns the outcomes for which an exception is thrown, and whether it is one that is known.
func meaning(class string) ([]topology.Outcome, bool) {
	name := class[strings.LastIndexAny(class, ".$")+1:]
	on, ok := exceptions[name]
	if !ok {
		on = topology.AllOutcomes()
	}
	return on, ok
}
