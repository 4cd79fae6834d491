package stale

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"

	"github.com/abate-go/abate/proxy/h1"
	"github.com/abate-go/abate/proxy/identity"
)

// whose are the ends of names of request fields that tell a user or a tenant, and no secret.
var whose = strings.Fields(`
	user user-id userid user-name username user-login login uid uuid email tenant tenant-id tenantid account account-id customer customer-id
	client-id org org-id organization organization-id company company-id merchant merchant-id member member-id shop-id store-id
	workspace workspace-id project-id principal principal-id principal-name subject sub on-behalf-of client-cert realm realm-id
	identity identity-id oidc-data groups group roles role scope scopes client-dn session-id sessionid sid jwt auth claims
	credential credentials password passwd signature signature-input custom-id consumer-id impersonate-user impersonate-group stripe-context`)

// steers are the beginnings of names of request fields that some services believe instead of the request line and Host,
// so that they say something else to the same request. What is one client's word may not be kept for others.
var steers = strings.Fields(`
	x-forwarded-host x-forwarded-proto x-forwarded-scheme x-forwarded-port x-forwarded-prefix x-forwarded-path x-forwarded-uri x-forwarded-server
	x-forwarded-ssl x-host x-original- x-rewrite-url x-http- x-method-override x-scheme x-url-scheme x-script-name front-end-https`)

// tells reports whether a request field of this name says whose a request is, or what it asks for.
func tells(name []byte) bool {
	if identity.Asserted(name) || identity.Named(name, "forwarded") {
		return true
	}
	for _, end := range whose {
		if identity.Ends(name, end) {
			return true
		}
	}
	for _, begin := range steers {
		if identity.Begins(name, begin) {
			return true
		}
	}
	return false
}

// isOf reports whether a name is in a list, in whatever case, and however many servers may see it.
func isOf(names []string, name []byte) bool {
	for _, n := range names {
		if len(n) == len(name) && identity.Named(name, strings.ToLower(n)) {
			return true
		}
	}
	return false
}

// AppendRules appends to a key by what rules it was decided that an answer is kept: whether all are for everybody, and
// which names tell whose they are. What was kept by other rules is not found by these.
func AppendRules(dst []byte, shared bool, names []string) []byte {
	if shared {
		dst = append(dst, 1)
	} else {
		dst = append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(len(names)))
	for _, n := range names {
		dst = binary.AppendUvarint(dst, uint64(len(n)))
		dst = append(dst, n...)
	}
	return dst
}

// AppendIdentity appends to a key what tells whose a request is: a hash of the fields with these names, and of those
// that usually say so, such as X-Tenant and X-User-Id. Requests that agree in all of them, in their order, have the
// same; one that has none appends nothing.
func AppendIdentity(dst []byte, fields []h1.Field, names []string) []byte {
	var room [256]byte
	text := room[:0]
	for i := range fields {
		f := &fields[i]
		if !isOf(names, f.Name) && !tells(f.Name) {
			continue
		}
		text = binary.AppendUvarint(text, uint64(len(f.Name)))
		for _, c := range f.Name {
			text = append(text, identity.Lower(c))
		}
		text = binary.AppendUvarint(text, uint64(len(f.Value)))
		text = append(text, f.Value...)
	}
	if len(text) == 0 {
		return dst
	}
	sum := sha256.Sum256(text)
	return append(dst, sum[:]...)
}

// Shared reports whether a response says that it is the same for everybody: Cache-Control has public or s-maxage (RFC
// 9111 sections 5.2.2.9 and 5.2.2.10). What says neither may be one client's.
func Shared(fields []h1.Field) bool {
	var cc directives
	for i := range fields {
		if f := &fields[i]; f.Is("cache-control") {
			cc.read(f.Value)
		}
	}
	return (cc.public || cc.sharedMaxAge.given) && !cc.private
}
