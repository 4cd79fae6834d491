package h1

// kind is what a field's name means to this package.
type kind uint8

const (
	ordinary  kind = iota
	keyField       // Idempotency-Key, X-Idempotency-Key: passed on like those before it
	hopByHop       // dropped unread: Keep-Alive, Proxy-Connection, Proxy-Authorization, HTTP2-Settings
	hostField      // Host
	contentLength
	transferEncoding
	connectionField
	teField
	upgradeField
	expectField
)

// kindOf compares a name with the few it can be by its length: most names are decided
// by their length or their first letter.
func kindOf(name []byte) kind {
	switch len(name) {
	case 2:
		return is(teField, name, "te")
	case 4:
		return is(hostField, name, "host")
	case 6:
		return is(expectField, name, "expect")
	case 7:
		return is(upgradeField, name, "upgrade")
	case 10:
		return is(connectionField, name, "connection") + is(hopByHop, name, "keep-alive")
	case 14:
		return is(contentLength, name, "content-length") + is(hopByHop, name, "http2-settings")
	case 15:
		return is(keyField, name, "idempotency-key")
	case 16:
		return is(hopByHop, name, "proxy-connection")
	case 17:
		return is(transferEncoding, name, "transfer-encoding") + is(keyField, name, "x-idempotency-key")
	case 19:
		return is(hopByHop, name, "proxy-authorization")
	}
	return ordinary
}

func is(k kind, name []byte, want string) kind {
	if fold(name, want) {
		return k
	}
	return ordinary
}

// guarded reports whether a name is one that a client may not have removed by naming
// it in Connection: the request would mean something else without the field.
func guarded(name []byte) bool {
	for _, prefix := range [...]string{"abate-", "x-envoy-", "x-forwarded-", "content-", "if-"} {
		if foldPrefix(name, prefix) {
			return true
		}
	}
	for _, one := range [...]string{
		"host", "transfer-encoding", "authorization", "cookie", "idempotency-key", "x-idempotency-key",
		"forwarded", "via", "cache-control", "range", "expect", "trailer",
	} {
		if fold(name, one) {
			return true
		}
	}
	return false
}

// InTrailer reports whether a field may come after the content (RFC 9110 section
// 6.5.1): not if it is needed to frame, route, authenticate, or begin to handle the
// message, which has happened by then.
func InTrailer(name []byte) bool {
	if fold(name, "content-digest") { // made for it, RFC 9530
		return true
	}
	if guarded(name) || kindOf(name) != ordinary {
		return false
	}
	for _, one := range [...]string{
		"proxy-authenticate", "proxy-authentication-info", "www-authenticate", "authentication-info", "set-cookie",
		"max-forwards", "pragma", "age", "date", "expires", "location", "retry-after", "vary", "warning",
	} {
		if fold(name, one) {
			return false
		}
	}
	return true
}
