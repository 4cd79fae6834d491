package connfail

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"strings"
	"syscall"
)

// signOf returns by what err itself is recognised, whatever it wraps; nothing if by nothing.
func signOf(err error) string {
	switch e := err.(type) {
	case interface{ SQLState() string }:
		if code := e.SQLState(); isSQLState(code) {
			return code
		}
		return "SQLSTATE"
	case interface{ RedisError() }:
		return redisSign(err.Error())
	case syscall.Errno:
		return errnos[e]
	case *net.DNSError:
		return dnsSign(e)
	case *net.AddrError, *net.ParseError, net.InvalidAddrError:
		return "address"
	case net.UnknownNetworkError:
		return "unknown network"
	case *net.OpError:
		if e != nil && e.Op == "remote error" { // how crypto/tls reports an alert
			return alertSign(e.Err)
		}
		return ""
	}
	if s := tlsSign(err); s != "" {
		return s
	}
	return textSign(err)
}

func tlsSign(err error) string {
	switch err.(type) {
	case *tls.CertificateVerificationError, x509.UnknownAuthorityError, x509.HostnameError, x509.CertificateInvalidError,
		x509.SystemRootsError, x509.UnhandledCriticalExtension, x509.ConstraintViolationError:
		return "x509"
	case tls.RecordHeaderError, *tls.RecordHeaderError:
		return "first record does not look like a TLS handshake"
	}
	return ""
}

// alertSign takes every alert for a refusal but the one that says that the other side failed.
func alertSign(alert error) string {
	if alert == nil || alert.Error() == "tls: internal error" {
		return ""
	}
	return "remote error: tls"
}

func dnsSign(e *net.DNSError) string {
	switch {
	case e == nil:
		return "lookup"
	case e.Err == "unknown port" || strings.HasPrefix(e.Err, "unknown port "):
		return "unknown port"
	case e.IsNotFound:
		return "no such host"
	}
	return "lookup"
}

// errnos are the errors of the operating system that have a rule.
var errnos = map[syscall.Errno]string{
	syscall.ECONNREFUSED: "ECONNREFUSED", syscall.ENOENT: "ENOENT", syscall.ECONNRESET: "ECONNRESET",
	syscall.ECONNABORTED: "ECONNABORTED",
	syscall.EPIPE:        "EPIPE", syscall.ETIMEDOUT: "ETIMEDOUT", syscall.ENETUNREACH: "ENETUNREACH",
	syscall.EHOSTUNREACH: "EHOSTUNREACH",
	syscall.ENETDOWN:     "ENETDOWN", syscall.EHOSTDOWN: "EHOSTDOWN", syscall.EACCES: "EACCES", syscall.EPERM: "EPERM",
	syscall.EAFNOSUPPORT: "EAFNOSUPPORT", syscall.EPROTONOSUPPORT: "EPROTONOSUPPORT", syscall.EMFILE: "EMFILE",
	syscall.ENFILE:        "ENFILE",
	syscall.EADDRNOTAVAIL: "EADDRNOTAVAIL", syscall.ENOBUFS: "ENOBUFS", syscall.ENOMEM: "ENOMEM", syscall.EAGAIN: "EAGAIN",
}

// textSign recognises errors that have no type of their own. But for one of database/sql, only an error that wraps
// nothing is read: the text of others quotes what may be anybody's words.
func textSign(err error) string {
	switch err {
	case io.EOF, io.ErrUnexpectedEOF:
		return "EOF"
	case net.ErrClosed:
		return "use of closed network connection"
	}
	text := err.Error()
	switch err.(type) {
	case interface{ Unwrap() error }, interface{ Unwrap() []error }:
		if strings.HasPrefix(text, "sql: Scan error on column") {
			return "sql:"
		}
		return ""
	}
	if n := mysqlNumber(text); n != "" {
		return mysqlSign(n, text)
	}
	// of franz-go
	if strings.HasPrefix(text, "invalid large response size") && strings.Contains(text, "tls alert record") {
		return "tls alert record"
	}
	for _, t := range texts {
		if strings.HasPrefix(text, t.prefix) {
			return t.sign
		}
	}
	return ""
}

// texts are what database/sql, pgx, lib/pq, go-sql-driver, net/http and franz-go say without a type.
var texts = []struct{ prefix, sign string }{
	{"sql: ", "sql:"},
	{"server refused TLS connection", "server refused TLS connection"},
	{"pq: SSL is not enabled on the server", "SSL is not enabled on the server"},
	{"TLS requested but server does not support TLS", "TLS requested but server does not support TLS"},
	{"http: server gave HTTP response to HTTPS client", "server gave HTTP response to HTTPS client"},
	{"read only connection", "read only connection"},
	{"server is in standby mode", "server is in standby mode"},
	{"session is read-only", "session is read-only"},
	{"server is in hot standby mode", "server is in hot standby mode"},
	{"connection is not read only", "connection is not read only"},
	{"session is not read-only", "session is not read-only"},
	{"server is not in hot standby mode", "server is not in hot standby mode"},
	{"SASL_AUTHENTICATION_FAILED:", "SASL_AUTHENTICATION_FAILED"},
	{"UNSUPPORTED_SASL_MECHANISM:", "UNSUPPORTED_SASL_MECHANISM"},
	{"CLUSTER_AUTHORIZATION_FAILED:", "CLUSTER_AUTHORIZATION_FAILED"},
}

// isSQLState reports whether code is five digits or capitals.
func isSQLState(code string) bool {
	if len(code) != 5 {
		return false
	}
	for _, c := range []byte(code) {
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// mysqlNumber is 1045 of "Error 1045 (28000): Access denied", which is how github.com/go-sql-driver/mysql says it.
func mysqlNumber(text string) string {
	rest, ok := strings.CutPrefix(text, "Error ")
	if !ok || len(rest) < 5 || rest[4] != ' ' && rest[4] != ':' {
		return ""
	}
	for _, c := range []byte(rest[:4]) {
		if c < '0' || c > '9' {
			return ""
		}
	}
	return rest[:4]
}

// mysqlSign is the number if there is a rule for it, else the SQLSTATE. HY000 says nothing.
func mysqlSign(number, text string) string {
	if sign := "MySQL " + number; bySign[sign] != nil {
		return sign
	}
	const from = len("Error 1045 (")
	if len(text) > from+5 && text[from-1] == '(' && text[from+5] == ')' && isSQLState(text[from:from+5]) {
		return text[from : from+5]
	}
	return "SQLSTATE"
}

// redisSign is the first word of what Redis said, or a few words more where the first is ERR.
func redisSign(text string) string {
	word, _, _ := strings.Cut(text, " ")
	if word == "ERR" {
		for _, known := range [...]string{
			"ERR max number of clients", "ERR AUTH", "ERR invalid password", "ERR Client sent AUTH",
		} {
			if strings.HasPrefix(text, known) {
				return known
			}
		}
	}
	if rule := bySign[word]; rule != nil && isUpper(word) {
		return word
	}
	return "RedisError"
}

func isUpper(word string) bool { return strings.ToUpper(word) == word }
