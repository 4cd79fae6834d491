// Package identity tells who a request is from: by the token it carries, or by the
// address that trusted proxies say it came from. It reads what clients write, so each part says what a client can and
// cannot make it believe.
package identity
