package h2

// peerSettings is what the SETTINGS of the peer say, as far as it matters.
type peerSettings struct {
	streams int // how many it takes at once
	window  int // of a new stream
	// extended reports that it takes an extended CONNECT.
	extended bool
}

const (
	// assumedStreams is how many streams a server is thought to take before it has said so.
	assumedStreams = 100
	// silentStreams is how many a server is given whose SETTINGS name no limit, as those of grpc-go do: RFC 9113 has none
	// then, and a pool of connections is better off with one.
	silentStreams = 1000
)

// appendGreeting appends what a connection begins with: the preface of a client, SETTINGS, and the window of the
// connection.
func appendGreeting(b []byte, server bool, config *Config) []byte {
	if !server {
		b = append(b, preface...)
	}
	at := len(b)
	b = appendFrame(b, 0, settingsFrame, 0, 0)
	if server {
		b = appendSetting(b, maxConcurrentStreams, config.MaxStreams)
		if config.ExtendedConnect {
			b = appendSetting(b, enableConnect, 1)
		}
	} else {
		b = appendSetting(b, enablePush, 0)
	}
	b = appendSetting(b, maxHeaderListSize, config.MaxHeadBytes)
	if config.StreamWindow != initialWindow {
		b = appendSetting(b, initialWindowSize, config.StreamWindow)
	}
	appendFrame(b[:at], len(b)-at-frameOverhead, settingsFrame, 0, 0)
	if more := config.ConnWindow - initialWindow; more > 0 {
		b = appendWindow(b, 0, more)
	}
	return b
}
