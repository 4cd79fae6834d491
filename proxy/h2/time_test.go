package h2_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"

	"github.com/abate-go/abate/core"
	"github.com/abate-go/abate/proxy/h2"
)

// virtual runs a server and a raw client of it in virtual time. Serve's error goes to ended.
func virtual(
	t *testing.T, config *h2.Config, handle func(*h2.Stream), test func(r *raw, c *h2.Conn, ended chan error),
) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		c := h2.NewServer(b, config, handle)
		ended := make(chan error, 1)
		go func() { ended <- c.Serve([]byte(http2.ClientPreface)) }()
		r := newRaw(t, a)
		r.SetDeadline(time.Time{})
		test(r, c, ended)
		r.Close()
		c.Close()
	})
}

// heard is a frame and the time when it came.
type heard struct {
	http2.Frame
	at time.Duration
}

// listen reads all frames, and hands them over when the connection has ended.
func (r *raw) listen() chan heard {
	frames, began := make(chan heard, 1000), time.Now()
	go func() {
		defer close(frames)
		var list []heard
		defer func() {
			for _, f := range list {
				frames <- f
			}
		}()
		answers := http2.NewFramer(r, nil)
		for {
			one := http2.NewFramer(nil, r) // reading the next frame would make this one invalid
			one.AllowIllegalReads = true
			f, err := one.ReadFrame()
			if err != nil {
				return
			}
			list = append(list, heard{f, time.Since(began)})
			if p, ok := f.(*http2.PingFrame); ok && !p.IsAck() && r.polite {
				answers.WritePing(true, p.Data)
			}
		}
	}()
	return frames
}

// of returns the frames of one type.
func of(kind http2.FrameType, frames chan heard) (list []heard) {
	for f := range frames {
		if f.Header().Type == kind {
			list = append(list, f)
		}
	}
	return list
}

func TestUnfinishedThingsEndInTime(t *testing.T) {
	config := &h2.Config{HeaderTimeout: 10 * time.Second, StallTimeout: 30 * time.Second, PingAfter: -1}
	for _, c := range []struct {
		name  string
		do    func(*raw)
		after time.Duration
		code  h2.Code
	}{
		{"no SETTINGS", func(r *raw) {}, 10 * time.Second, h2.SettingsTimeout},
		{"half of SETTINGS", func(r *raw) { r.Write([]byte{0, 0, 6}) }, 10 * time.Second, h2.SettingsTimeout},
		{"half of HEADERS", func(r *raw) { r.WriteSettings(); r.Write([]byte{0, 0, 6, 1, 4, 0, 0, 0, 1}) },
			10 * time.Second, h2.EnhanceYourCalm},
		{"HEADERS without its end", func(r *raw) {
			r.WriteSettings()
			r.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...)})
		}, 10 * time.Second, h2.EnhanceYourCalm},
		{"HEADERS that come slowly", func(r *raw) {
			r.WriteSettings()
			for _, b := range []byte{0, 0, 60, 1, 4, 0, 0, 0, 1, 0x82, 0x84} {
				r.Write([]byte{b})
				time.Sleep(time.Second)
			}
			for range 50 {
				r.Write([]byte{0x82})
				time.Sleep(time.Second)
			}
		}, 18 * time.Second, h2.EnhanceYourCalm}, // it is known to be HEADERS after 8 s
		{"half of DATA",
			func(r *raw) { r.WriteSettings(); r.request(1, false); r.Write([]byte{0, 0, 6, 0, 0, 0, 0, 0, 1, 7}) },
			30 * time.Second, h2.EnhanceYourCalm},
	} {
		t.Run(c.name, func(t *testing.T) {
			virtual(t, config, still, func(r *raw, _ *h2.Conn, ended chan error) {
				frames := r.listen()
				c.do(r)
				list := of(http2.FrameGoAway, frames)
				if len(list) != 1 || h2.Code(list[0].Frame.(*http2.GoAwayFrame).ErrCode) != c.code || list[0].at != c.after {
					t.Errorf("GOAWAY: %v", list)
				}
				if err, ok := (<-ended).(*h2.ConnError); !ok || err.Code != c.code {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}

// A trailer has its own time limit, even if it begins in the segment in which the head of its stream ends.
func TestEachHeadOfAStreamHasItsOwnTime(t *testing.T) {
	virtual(t, &h2.Config{HeaderTimeout: 10 * time.Second, PingAfter: -1}, still, func(r *raw, _ *h2.Conn, _ chan error) {
		var frames bytes.Buffer
		sent := http2.NewFramer(&frames, nil)
		sent.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: r.fields(get...), EndHeaders: true})
		trailer := r.fields("x-sum", "1")
		sent.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: trailer, EndHeaders: true, EndStream: true})
		heard := r.listen()
		r.WriteSettings()
		for _, n := range []int{12, frames.Len() - 16, 4} { // half of the head; its end and half of the trailer; the rest
			r.Write(frames.Next(n))
			time.Sleep(9 * time.Second)
		}
		r.Close()
		for _, f := range of(http2.FrameGoAway, heard) {
			g := f.Frame.(*http2.GoAwayFrame)
			t.Errorf("GOAWAY after %v: %v %q", f.at, g.ErrCode, g.DebugData())
		}
	})
}

func TestIdleConnectionsEnd(t *testing.T) {
	virtual(t, &h2.Config{IdleTimeout: time.Minute}, still, func(r *raw, _ *h2.Conn, ended chan error) {
		r.polite = true
		frames := r.listen()
		r.WriteSettings()
		r.WriteSettingsAck()
		time.Sleep(50 * time.Second)
		r.request(1, true, "x-answer", "now")
		list := of(http2.FrameGoAway, frames)
		if len(list) != 2 || list[0].at != 110*time.Second || list[1].at != 110*time.Second {
			t.Fatalf("GOAWAY: %v", list)
		}
		for i, last := range []uint32{1<<31 - 1, 1} {
			if g := list[i].Frame.(*http2.GoAwayFrame); g.LastStreamID != last || g.ErrCode != http2.ErrCodeNo {
				t.Errorf("GOAWAY %d: %v", i, g)
			}
		}
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
	})
}

// PING frames are rare enough for servers of gRPC, which count them.
func TestSilentPeersAreAskedForASignOfLife(t *testing.T) {
	virtual(t, nil, still, func(r *raw, _ *h2.Conn, ended chan error) {
		r.polite = true
		frames := r.listen()
		r.WriteSettings()
		time.Sleep(50 * time.Second) // no streams, no questions
		r.request(1, false)
		time.Sleep(430 * time.Second)
		r.WriteData(1, false, []byte("x")) // it begins anew
		time.Sleep(16 * time.Second)
		r.Close()
		<-ended
		var got []time.Duration
		for _, f := range of(http2.FramePing, frames) {
			got = append(got, f.at-50*time.Second)
		}
		want := []time.Duration{15 * time.Second, 45 * time.Second, 105 * time.Second, 415 * time.Second, 445 * time.Second}
		if len(got) != len(want) {
			t.Fatalf("asked at %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("asked at %v, want %v", got, want)
				break
			}
		}
	})
}

func TestDeadPeersAreFoundOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		r := newRaw(t, b)
		r.SetDeadline(time.Time{})
		go io.ReadFull(b, make([]byte, len(http2.ClientPreface)))
		closing := make(chan struct{})
		c, err := h2.NewClient(a, &h2.Config{OnClosing: func(*h2.Conn) { close(closing) }})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.listen()
		r.WriteSettings()
		time.Sleep(time.Second)
		s := open(t, c, post("/"), "", true)
		began := core.Now()
		_, err = s.AwaitHead(core.NoDeadline)
		failure(t, err, h2.Cancel, false)
		if waited := core.Now() - began; waited != 20*time.Second {
			t.Errorf("found out after %v", waited)
		}
		<-closing
		<-c.Done()
		if _, _, err := c.Open(post("/"), nil, true, core.NoDeadline); err != h2.ErrGoingAway {
			t.Errorf("a stream on a dead connection: %v", err)
		}
	})
}

func TestPeersThatTakeNothingAreLeft(t *testing.T) {
	virtual(t, &h2.Config{PingAfter: -1}, func(s *h2.Stream) {
		s.WriteHead(200, nil, -1, false)
		began := core.Now()
		err := s.Write(make([]byte, 1<<20), true, core.NoDeadline)
		if waited := core.Now() - began; err == nil || waited != 30*time.Second {
			t.Errorf("writing ended after %v with %v", waited, err)
		}
	}, func(r *raw, _ *h2.Conn, ended chan error) {
		go func() { // reads until the answer begins
			for {
				f, err := r.ReadFrame()
				if err != nil || f.Header().Type == http2.FrameHeaders {
					return
				}
			}
		}()
		r.WriteSettings()
		r.WriteWindowUpdate(0, 1<<20)
		r.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20})
		r.request(1, true)
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "took nothing") {
			t.Errorf("ended with %v", err)
		}
	})
}

func TestStreamsWhoseWindowStaysClosedEnd(t *testing.T) {
	virtual(t, nil, func(s *h2.Stream) {
		if value(s.Head().Fields, "x-answer") != "" {
			still(s)
			return
		}
		s.WriteHead(200, nil, -1, false)
		began := core.Now()
		err := s.Write(make([]byte, 1<<20), true, core.NoDeadline)
		failure(t, err, h2.Cancel, false)
		if waited := core.Now() - began; waited != 40*time.Second {
			t.Errorf("writing ended after %v", waited)
		}
	}, func(r *raw, _ *h2.Conn, ended chan error) {
		r.polite = true
		frames := r.listen()
		r.WriteSettings()
		r.WriteWindowUpdate(0, 1<<20)
		r.request(1, true)
		time.Sleep(10 * time.Second)
		r.WriteWindowUpdate(1, 1)
		time.Sleep(31 * time.Second)
		r.request(3, true, "x-answer", "now")
		time.Sleep(time.Second)
		r.Close()
		<-ended
		reset, answered := time.Duration(0), false
		for f := range frames {
			switch g := f.Frame.(type) {
			case *http2.RSTStreamFrame:
				reset = f.at
			case *http2.HeadersFrame:
				answered = answered || g.StreamID == 3
			}
		}
		if reset != 40*time.Second || !answered {
			t.Errorf("reset after %v; the next was answered: %t", reset, answered)
		}
	})
}

func TestDeadlinesAreKept(t *testing.T) {
	virtual(t, nil, func(s *h2.Stream) {
		if string(s.Head().Method) == "PUT" { // an alarm that is far away does not keep others from coming
			s.Next(core.Now() + time.Hour)
			return
		}
		for _, d := range []time.Duration{100 * time.Millisecond, 3 * time.Millisecond, time.Second, 0, -1} {
			began := core.Now()
			if _, err := s.Next(began + d); err != h2.ErrTimeUp || core.Now()-began != max(d, 0) {
				t.Errorf("waited %v instead of %v, %v", core.Now()-began, d, err)
			}
		}
	}, func(r *raw, _ *h2.Conn, ended chan error) {
		r.polite = true
		r.listen()
		r.WriteSettings()
		r.headers(1, false, r.fields(":method", "PUT", ":scheme", "http", ":path", "/"))
		synctest.Wait()
		r.request(3, false)
		time.Sleep(time.Minute)
		r.Close()
		<-ended
	})
}

// A trailer waits for a peer that takes nothing no longer than its stream has.
func TestATrailerKeepsItsDeadline(t *testing.T) {
	var begun, full chan struct{}
	virtual(t, &h2.Config{StallTimeout: time.Hour}, func(s *h2.Stream) {
		if string(s.Head().Method) == "POST" { // the other has everything full that waits to be written
			<-begun
			for !s.Crowded() {
				s.Inform(103, field("x-more", strings.Repeat("more", 1000)))
				synctest.Wait()
			}
			close(full)
			return
		}
		s.WriteHead(200, nil, -1, false)
		close(begun)
		<-full
		began := core.Now()
		err := s.WriteTrailer(field("x-end", "1"), began+time.Second)
		if waited := core.Now() - began; err != h2.ErrTimeUp || waited != time.Second {
			t.Errorf("waited %v, %v", waited, err)
		}
	}, func(r *raw, _ *h2.Conn, ended chan error) {
		begun, full = make(chan struct{}), make(chan struct{})
		r.WriteSettings()
		r.request(1, true)
		r.headers(3, true, r.fields(":method", "POST", ":scheme", "http", ":path", "/"))
		time.Sleep(time.Minute)
		r.Close()
		<-ended
	})
}

func TestDrainLosesNothing(t *testing.T) {
	var finish chan struct{}
	virtual(t, nil, func(s *h2.Stream) {
		<-finish
		s.WriteHead(204, nil, -1, true)
	}, func(r *raw, c *h2.Conn, ended chan error) {
		finish = make(chan struct{})
		frames := r.listen()
		r.WriteSettings()
		r.request(1, true)
		synctest.Wait()
		c.Drain()
		c.Drain()
		r.request(3, true)          // was on its way
		time.Sleep(2 * time.Second) // the question is not answered
		r.request(5, true)          // too late
		r.WriteData(5, true, nil)
		synctest.Wait()
		close(finish)
		if err := <-ended; err != nil {
			t.Errorf("ended with %v", err)
		}
		answered := make(map[uint32]bool)
		var last []uint32
		for f := range frames {
			switch g := f.Frame.(type) {
			case *http2.GoAwayFrame:
				last = append(last, g.LastStreamID)
			case *http2.HeadersFrame:
				answered[g.StreamID] = true
			case *http2.RSTStreamFrame:
				t.Errorf("stream %d is reset: %v", g.StreamID, g.ErrCode)
			}
		}
		if len(last) != 2 || last[0] != 1<<31-1 || last[1] != 3 || !answered[1] || !answered[3] || answered[5] {
			t.Errorf("GOAWAY for %v, answered %v", last, answered)
		}
	})
}
