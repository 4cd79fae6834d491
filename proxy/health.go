package proxy

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/hops"
	"github.com/abate-go/abate/policy/breaker"
)

// healthPath is the service of gRPC's health checks, grpc.health.v1.
const healthPath = "/grpc.health.v1.Health/"

// servingStatus is what a health check says, with the numbers of grpc.health.v1.
type servingStatus byte

const (
	serving        servingStatus = 1
	notServing     servingStatus = 2
	serviceUnknown servingStatus = 3
)

// health answers the health checks of gRPC. The service "" is the proxy, which serves until Shutdown; the others are
// those of the policy file that are called: one is NOT_SERVING while its circuit breaker lets nothing pass.
type health struct{ admin *admin }

// handle enters the methods in the admin page. Whoever looks whether the proxy is well, such as a kubelet, has no
// token: what names services is for those who are known.
func (h health) handle(mux *http.ServeMux) {
	for name, method := range map[string]func(w http.ResponseWriter, r *http.Request, service string) hops.Code{
		"Check": h.check, "List": h.list, "Watch": h.watch,
	} {
		mux.HandleFunc("POST "+healthPath+name, func(w http.ResponseWriter, r *http.Request) {
			if !isRPC([]byte(r.Header.Get("Content-Type"))) || r.ProtoMajor != 2 {
				http.Error(w, "this is for gRPC, over HTTP/2", http.StatusUnsupportedMediaType)
				return
			}
			w.Header().Set("Content-Type", "application/grpc")
			service, code := readHealthRequest(r.Body)
			if missing := h.admin.missing(r); code == hops.OK && (service != "" || name == "List") && missing != 0 {
				code = rpcCode(missing)
			}
			if code == hops.OK {
				code = method(w, r, service)
			}
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", strconv.Itoa(int(code)))
		})
	}
}

// maxHealthRequest bounds a request: it holds a name.
const maxHealthRequest = 4 << 10

// readHealthRequest reads a HealthCheckRequest: a message of gRPC with one field, the service.
func readHealthRequest(body io.Reader) (service string, _ hops.Code) {
	data, err := io.ReadAll(io.LimitReader(body, maxHealthRequest+1))
	switch {
	case err != nil:
		return "", hops.Canceled
	case len(data) > maxHealthRequest:
		return "", hops.ResourceExhausted
	case len(data) < 5 || int64(binary.BigEndian.Uint32(data[1:])) != int64(len(data)-5):
		return "", hops.Internal // as implementations of gRPC say
	case data[0] != 0: // compressed, which nobody has been told is understood
		return "", hops.Unimplemented
	}
	service, ok := parseHealthRequest(data[5:])
	if !ok {
		return "", hops.Internal
	}
	return service, hops.OK
}

// parseHealthRequest reads the protocol buffer. Fields that it does not know are skipped, the last of several counts.
func parseHealthRequest(b []byte) (service string, ok bool) {
	for len(b) > 0 {
		key, n := binary.Uvarint(b)
		if n <= 0 || key>>3 == 0 {
			return "", false
		}
		b = b[n:]
		size := 0
		switch key & 7 {
		case 0: // a number
			if _, size = binary.Uvarint(b); size <= 0 {
				return "", false
			}
		case 1:
			size = 8
		case 5:
			size = 4
		case 2: // bytes
			length, n := binary.Uvarint(b)
			if n <= 0 || length > uint64(len(b)-n) {
				return "", false
			}
			if b = b[n:]; key>>3 == 1 {
				service = string(b[:length])
			}
			size = int(length)
		default:
			return "", false
		}
		if size > len(b) {
			return "", false
		}
		b = b[size:]
	}
	return service, true
}

func (h health) ready() bool { return h.admin.lobby.ready() }

// status looks a service up.
func (h health) status(service string) servingStatus {
	if service == "" {
		if h.ready() {
			return serving
		}
		return notServing
	}
	g, ok := h.admin.plane.policies.Lookup(service)
	switch {
	case !ok:
		return serviceUnknown
	case !h.ready():
		return notServing
	}
	if b := g.State().Breaker; b.State == breaker.Open && (b.OpenUntil == 0 || core.Now() < b.OpenUntil) {
		return notServing // from then on it takes a call to find out
	}
	return serving
}

func (h health) check(w http.ResponseWriter, _ *http.Request, service string) hops.Code {
	s := h.status(service)
	if s == serviceUnknown {
		w.Header().Set(http.TrailerPrefix+"Grpc-Message", "the policy file has no such service")
		return notFound
	}
	return writeHealth(w, appendServing(nil, s))
}

// list reports about all services: a map of names to answers of check.
func (h health) list(w http.ResponseWriter, _ *http.Request, _ string) hops.Code {
	var b []byte
	for _, name := range append([]string{""}, h.admin.plane.policies.Names()...) {
		entry := appendBytes(nil, 1, []byte(name))
		entry = appendBytes(entry, 2, appendServing(nil, h.status(name)))
		b = appendBytes(b, 1, entry)
	}
	return writeHealth(w, b)
}

// watchEvery is how often a watched service is looked at.
const watchEvery = 250 * time.Millisecond

// watch reports how a service is, and again whenever that changes, until the client leaves or the proxy ends.
func (h health) watch(w http.ResponseWriter, r *http.Request, service string) hops.Code {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for last := servingStatus(0); ; {
		if now := h.status(service); now != last {
			last = now
			if code := writeHealth(w, appendServing(nil, now)); code != hops.OK {
				return code
			}
		}
		select {
		case <-tick.C:
		case <-h.admin.plane.life.Done():
			return hops.Unavailable
		case <-r.Context().Done():
			if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
				return hops.DeadlineExceeded
			}
			return hops.Canceled
		}
	}
}

// appendServing writes a HealthCheckResponse.
func appendServing(dst []byte, s servingStatus) []byte { return append(dst, 1<<3, byte(s)) }

// appendBytes writes a field of a protocol buffer.
func appendBytes(dst []byte, field uint64, value []byte) []byte {
	dst = binary.AppendUvarint(dst, field<<3|2)
	return append(binary.AppendUvarint(dst, uint64(len(value))), value...)
}

func writeHealth(w http.ResponseWriter, message []byte) hops.Code {
	b := append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
	if _, err := w.Write(b); err != nil {
		return hops.Canceled
	}
	_ = http.NewResponseController(w).Flush() // the next write finds out
	return hops.OK
}
