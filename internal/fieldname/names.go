// Package fieldname knows the fields of requests by their names: which of them say whose a request is, and which make
// it another one.
package fieldname

import "strings"

// A Name is a field's, in any case.
type Name interface{ ~string | ~[]byte }

// Named reports whether a field has this name, which is in lower case, as many servers see it; see Begins.
func Named[N Name](name N, want string) bool { return len(name) == len(want) && Begins(name, want) }

// Begins reports whether a field's name begins with a prefix, which is in lower case. An underscore, a dot and every
// other sign is a dash: it is to servers that turn names into variables, as with CGI, WSGI and Rack.
func Begins[N Name](name N, prefix string) bool {
	if len(name) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		c, want := Lower(name[i]), prefix[i]
		if c != want && (!isSign(want) || !isSign(c)) {
			return false
		}
	}
	return true
}

// Ends reports whether a field's name is one of these words, in lower case, or ends in a sign and one.
func Ends[N Name](name N, word string) bool {
	n := len(name) - len(word)
	return n >= 0 && (n == 0 || isSign(Lower(name[n-1]))) && Begins(name[n:], word)
}

// Lower is an ASCII letter in lower case, and any other byte as it is.
func Lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c |= 0x20
	}
	return c
}

// isSign reports whether a character of a name, in lower case, is neither a letter nor a digit.
func isSign(c byte) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') }

// Asserted reports whether a field is one in which proxies tell services who a user is, after they have asked him:
// Remote-User, X-Auth-Request-User, X-Client-Cert, X-Amzn-Oidc-Data and their like. No client sends one in good faith.
// The fields X-Forwarded-... are not among them, nor are those that clients use themselves, such as X-Auth-Token.
func Asserted[N Name](name N) bool {
	if len(name) == 0 {
		return false
	}
	for _, word := range tellers[name[0]&31] {
		if Begins(name, word) && (len(name) == len(word) || word[len(word)-1] == '-') {
			return true
		}
	}
	return false
}

// tellers is the names of those fields, by the lower five bits of the first letter. A name that ends with a dash stands
// for all that begin so.
var tellers = func() (by [32][]string) {
	for _, name := range strings.Fields(`
		remote-user remote-users remote-name remote-email remote-group remote-groups remote-extra- x-remote-user
		x-remote-name x-remote-email x-remote-group x-remote-groups x-remote-extra- proxy-remote-user
		x-proxy-remote-user x-proxy-user x-proxy-remote-group http-remote-user x-auth-request- x-authenticated-
		x-webauth- x-authentik- x-pomerium- x-vouch- x-consumer- x-credential-identifier x-credential-username
		x-anonymous-consumer client-cert client-cert-chain x-client-cert x-client-cert- x-client-certificate
		x-client-dn x-client-s-dn x-client-subject-dn x-client-verify ssl-client- ssl-cert x-ssl- x-tls-client-
		cf-client-cert- x-arr-clientcert wl-proxy-client- wl-proxy-ssl x-amzn-oidc- x-amzn-mtls-
		x-ms-client-principal x-ms-client-principal- x-ms-token- x-goog-authenticated-user- x-goog-iap-
		cf-access-authenticated- cf-access-jwt-assertion tailscale-user- x-jwt-assertion x-endpoint-api-
		x-apigateway-api-userinfo x-rh-identity oidc-claim- oidc-access-token oidc-id-token oidc-userinfo
		mellon- shib- sm-user sm-universalid sm-userdn sm-authtype sm-groups sm-serversessionid smuser iv-user
		iv-user-l iv-groups iv-creds oam-remote-user $wscc $wsis $wsra $wsru $wsat $wsssn`) {
		by[name[0]&31] = append(by[name[0]&31], name)
	}
	return by
}()
