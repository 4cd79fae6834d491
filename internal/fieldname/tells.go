package fieldname

import "strings"

// whose are the ends of names of request fields that tell a user or a tenant, and no secret.
var whose = strings.Fields(`
	user user-id userid user-name username user-login login uid uuid email tenant tenant-id tenantid account
	account-id customer customer-id client-id org org-id organization organization-id company company-id
	merchant merchant-id member member-id shop-id store-id workspace workspace-id project-id principal
	principal-id principal-name subject sub on-behalf-of client-cert realm realm-id identity identity-id
	oidc-data groups group roles role scope scopes client-dn session-id sessionid sid jwt auth claims
	credential credentials password passwd signature signature-input custom-id consumer-id impersonate-user
	impersonate-group stripe-context`)

// steers are the beginnings of names of request fields that some services believe instead of the request line and Host,
// so that they say something else to the same request. What is one client's word may not be kept for others.
var steers = strings.Fields(`
	x-forwarded-host x-forwarded-proto x-forwarded-scheme x-forwarded-port x-forwarded-prefix
	x-forwarded-path x-forwarded-uri x-forwarded-server x-forwarded-ssl x-host x-original- x-rewrite-url
	x-http- x-method-override x-scheme x-url-scheme x-script-name front-end-https`)

// Tells reports whether a request field of this name says whose a request is, or what it asks for.
func Tells[N Name](name N) bool {
	if Asserted(name) || Named(name, "forwarded") {
		return true
	}
	for _, end := range whose {
		if Ends(name, end) {
			return true
		}
	}
	for _, begin := range steers {
		if Begins(name, begin) {
			return true
		}
	}
	return false
}

// secrets are the ends of names of request fields that carry a credential.
var secrets = strings.Fields(`token key auth secret apikey accesstoken access-key`)

// passing are the names of fields that look like those, and are of one attempt, one connection or one path through the
// network: another attempt of the same sender may bring another value.
var passing = strings.Fields(`
	idempotency-key idempotency-token x-forwarded-server x-original-forwarded-for x-original-remote-addr
	x-http-request-id x-request-uid x-request-uuid x-correlation-uid x-correlation-uuid x-ssl-session-id
	x-ssl-cipher x-ssl-protocol ssl-client-session-id csrf-token xsrf-token csrftoken sec-websocket-key
	x-amzn-oidc-data x-goog-iap-jwt-assertion signature signature-input`)

// Distinguishes reports whether requests that have other values in a field of this name are not the same: it says whose
// a request is, carries a credential, or asks for something else. Forwarded is not among them, which says by which
// address a request came.
func Distinguishes[N Name](name N) bool {
	if n := len(name) - len("-bin"); n > 0 && Begins(name[n:], "-bin") { // of gRPC
		name = name[:n]
	}
	for _, word := range passing {
		if Ends(name, word) {
			return false
		}
	}
	for _, end := range secrets {
		if Ends(name, end) {
			return true
		}
	}
	return !Named(name, "forwarded") && Tells(name)
}
