package abatekafka

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
)

// clientLog passes on what the Kafka client has to say: its warnings and errors, to people; the rest only where slog's
// level is debug.
type clientLog struct{ log *slog.Logger }

func (l clientLog) Level() kgo.LogLevel {
	if l.log.Enabled(context.Background(), slog.LevelDebug) {
		return kgo.LogLevelInfo
	}
	return kgo.LogLevelWarn
}

func (l clientLog) Log(level kgo.LogLevel, msg string, keyvals ...any) {
	at := slog.LevelDebug
	switch level {
	case kgo.LogLevelError:
		at = slog.LevelError
	case kgo.LogLevelWarn:
		at = slog.LevelWarn
	}
	l.log.Log(context.Background(), at, "kafka client: "+msg, keyvals...)
}
