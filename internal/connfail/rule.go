package connfail

import "github.com/abate-go/abate"

// Decision is what is done about an error.
type Decision string

const (
	// Again: a failure that a second try may fix.
	Again Decision = "tried again"
	// Slower: a refusal for load. It is tried again, and costs the retry budget more.
	Slower Decision = "tried again, as overload"
	// Final: a failure that somebody has to fix first. It counts for the circuit breaker, so that even callers who
	// come one after the other do not ask more often than its probes.
	Final Decision = "not tried again"
	// Answer: nobody's failure. It is not tried again, and counts for nothing.
	Answer Decision = "an answer"
)

func (d Decision) outcome(err error) abate.Outcome {
	switch d {
	case Slower:
		return abate.Outcome{Class: abate.Overload, Err: err}
	case Final:
		return abate.Outcome{Class: abate.Failure, NoRetry: true, Err: err}
	case Answer:
		return abate.Outcome{Class: abate.Ignored, Err: err}
	}
	return abate.Outcome{Class: abate.Failure, Err: err}
}

// Rule is what is known about errors of one kind.
type Rule struct {
	// Name says what is wrong.
	Name string
	// Signs are how such an error is recognised: a SQLSTATE or a class of them (53xxx), "MySQL" and a number, the first
	// word of an error of Redis, the name of an error of the operating system, or words of the error's text.
	Signs []string
	// Opening is the decision when a connection was to be opened, Statement when a statement was to be carried out.
	Opening, Statement Decision
	// Hint says what people can do.
	Hint string
	// Severs is true when the connection is of no more use.
	Severs bool

	weight int // in a tree of errors the rules of the greatest weight count
}

// takesNoWrites is the name of the rule for servers that have become replicas, or are to be.
const takesNoWrites = "a server that takes no writes"

// OnlyWrites reports whether the connection is of no more use for writes only, and another one may lead to a server
// that takes them.
func (r *Rule) OnlyWrites() bool { return r.Name == takesNoWrites }

// How near an error came to what was wanted.
const (
	besideThePoint = iota // the driver has another way
	onTheWay
	atTheDoor
	fromTheServer
)

// unknown is the rule for everything else.
var unknown = Rule{
	Name: "an error that abate does not know", Opening: Again, Statement: Again, Hint: "the error's own text says more",
}

// Rules is everything that is known, in the order of the documentation. Nobody may change it.
var Rules = []Rule{
	{"wrong user or password", []string{
		"28xxx", "MySQL 1045", "MySQL 1698", "MySQL 1251", "MySQL 1862", "MySQL 1820", "WRONGPASS", "NOAUTH", "NOPERM",
		"ERR AUTH", "ERR invalid password", "ERR Client sent AUTH", "DENIED", "SASL_AUTHENTICATION_FAILED",
		"UNSUPPORTED_SASL_MECHANISM",
	},
		Final, Final, "check the user, the secret and who may connect from here", false, fromTheServer},
	{"no such database", []string{"3Dxxx", "MySQL 1049"}, Final, Final,
		"check the name in the address, or create it first", false, fromTheServer},
	{"not allowed", []string{
		"42501", "MySQL 1044", "MySQL 1142", "MySQL 1143", "MySQL 1130", "MySQL 1129", "CLUSTER_AUTHORIZATION_FAILED",
	},
		Final, Answer, "grant the right, or connect as somebody who has it", false, fromTheServer},
	{"the server asks for TLS", []string{"MySQL 3159", "tls alert record"}, Final, Final, "switch TLS on in the client",
		false, fromTheServer},
	{"a setting that the server does not take", []string{"0Axxx", "22xxx", "42xxx", "F0xxx", "MySQL 1792"}, Final, Answer,
		"correct the setting or the statement that the message names", false, fromTheServer},
	{"too many connections", []string{"53300", "MySQL 1040", "MySQL 1203", "MySQL 1226", "ERR max number of clients"},
		Slower, Slower, "make the pools smaller: their sum over all instances must fit the server's limit", false,
		fromTheServer},
	{"the server is out of something", []string{"53xxx", "OOM"}, Slower, Slower, "give it memory or disk, or less to do",
		false, fromTheServer},
	{"the server takes no connections now", []string{"57P03"}, Again, Again,
		"wait until it has started or is up again; a replica with hot_standby=off never takes any", true, fromTheServer},
	{"the server is starting", []string{"LOADING"}, Again, Again, "wait", true, fromTheServer},
	{"the server is going down", []string{"57P01", "57P02", "57P05", "MySQL 1053", "MySQL 1077"}, Again, Again,
		"wait for its restart or for the failover", true, fromTheServer},
	{takesNoWrites, []string{"25006", "MySQL 1290", "MySQL 1836", "READONLY", "read only connection",
		"server is in standby mode", "session is read-only", "server is in hot standby mode"},
		Again, Again, "wait for the failover; if it is none, the address leads to a replica", true, fromTheServer},
	{"a server that is no replica", []string{
		"connection is not read only", "session is not read-only", "server is not in hot standby mode",
	},
		Again, Again, "wait until a replica is back; if there is none, correct target_session_attrs in the address", false,
		fromTheServer},
	{"a server without its primary", []string{"MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "TRYAGAIN"}, Again, Again,
		"wait for the failover", false, fromTheServer},
	{"a server at work on something long", []string{"BUSY"}, Again, Again, "wait, or end the script that runs there",
		false, fromTheServer},
	{"the connection broke", []string{"08xxx"}, Again, Again, "look at the server's log and at what is between", true,
		fromTheServer},
	{"transactions in each other's way", []string{"40xxx", "55P03", "MySQL 1205", "MySQL 1213"}, Again, Again,
		"repeat the whole transaction", false, fromTheServer},
	{"cancelled by the server", []string{"57014", "MySQL 3024"}, Again, Final,
		"make the statement quicker, or its time limit longer", false, fromTheServer},
	{"the server failed", []string{"58xxx", "XXxxx", "MISCONF"}, Again, Final, "look at the server's log", false,
		fromTheServer},
	{"a SQLSTATE of another kind", []string{"SQLSTATE"}, Again, Answer, "look it up in the server's manual", false,
		fromTheServer},
	{"a mistake or an empty answer, says database/sql", []string{"sql:"}, Final, Answer,
		"correct the program; sql.ErrNoRows needs no correction", false, fromTheServer},
	{"an answer of Redis of another kind", []string{"RedisError"}, Again, Answer, "look it up in the manual", false,
		fromTheServer},
	{"a certificate that is not trusted", []string{"x509"}, Final, Final,
		"check the host's name, the authority and the dates", false, atTheDoor},
	{"no TLS at that port", []string{
		"first record does not look like a TLS handshake", "server gave HTTP response to HTTPS client",
	},
		Final, Final, "switch TLS off in the client or on in the server, and check the port", false, atTheDoor},
	{"TLS refused by the other side", []string{"remote error: tls"}, Final, Final,
		"check the client's certificate and the versions of TLS", false, atTheDoor},
	{"the server has no TLS", []string{
		"server refused TLS connection", "SSL is not enabled on the server", "TLS requested but server does not support TLS",
	}, Final, Final, "switch TLS on in the server, or off in the client", false, besideThePoint},
	{"nobody listens there", []string{"ECONNREFUSED", "ENOENT"}, Again, Again,
		"wait until the server is up; if it is, check the address", false, onTheWay},
	{"the connection was closed", []string{
		"EOF", "ECONNRESET", "ECONNABORTED", "EPIPE", "use of closed network connection",
	}, Again, Again, "look at the server's log and at what is between", true, onTheWay},
	{"no answer in time", []string{"timeout", "ETIMEDOUT"}, Again, Again,
		"check firewalls and the address, or allow more time", false, onTheWay},
	{"no way to that host", []string{"ENETUNREACH", "EHOSTUNREACH", "ENETDOWN", "EHOSTDOWN"}, Again, Again,
		"check the network and the address", false, onTheWay},
	{"a name that is not known", []string{"no such host"}, Again, Again,
		"wait until it is registered; if it should be, check how it is written", false, onTheWay},
	{"names cannot be looked up", []string{"lookup"}, Again, Again, "look at the DNS server", false, onTheWay},
	{"an address that is none", []string{"address", "unknown network", "unknown port"}, Final, Final,
		"write it as host:port", false, onTheWay},
	{"not allowed to connect", []string{"EACCES", "EPERM"}, Final, Final,
		"check the socket's permissions and the firewall of this machine", false, onTheWay},
	{"a kind of address that this machine does not have", []string{"EAFNOSUPPORT", "EPROTONOSUPPORT"}, Final, Final,
		"use an address of the other kind", false, onTheWay},
	{"this machine is out of something", []string{"EMFILE", "ENFILE", "EADDRNOTAVAIL", "ENOBUFS", "ENOMEM", "EAGAIN"},
		Slower, Slower, "look for connections that are not closed; allow more open files or ports", false, onTheWay},
}

var bySign = func() map[string]*Rule {
	m := make(map[string]*Rule)
	for i := range Rules {
		for _, sign := range Rules[i].Signs {
			m[sign] = &Rules[i]
		}
	}
	return m
}()
