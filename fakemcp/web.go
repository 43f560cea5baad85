package fakemcp

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/wire"
)

// Elsewhere is the method of a Request that came to the address where Redirect sends calls.
const Elsewhere = "elsewhere"

// A webAct answers a request over HTTP, or says false.
type webAct func(s *Server, w http.ResponseWriter, r *http.Request, m wire.Message) bool

// redirect sends calls to the same server by another name, which is another origin.
func redirect(int) webAct {
	return func(s *Server, w http.ResponseWriter, r *http.Request, m wire.Message) bool {
		switch {
		case r.URL.Path == "/"+Elsewhere:
			s.note(wire.Message{Method: Elsewhere, Params: wire.Quote(r.Header.Get("Authorization"))})
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{"resultType":"complete","content":[{"type":"text","text":"from elsewhere"}]}}`)
		case m.Method == wire.MethodToolsCall:
			s.note(m)
			http.Redirect(w, r, strings.Replace(s.web.URL, "127.0.0.1", "localhost", 1)+"/"+Elsewhere, http.StatusTemporaryRedirect)
		default:
			return false
		}
		return true
	}
}

// refusing answers calls with a status, a header of it, and no message.
func refusing(status int, header, value string) func(int) webAct {
	return func(int) webAct {
		return func(s *Server, w http.ResponseWriter, _ *http.Request, m wire.Message) bool {
			if m.Method != wire.MethodToolsCall {
				return false
			}
			s.note(m)
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(status)
			return true
		}
	}
}

func webPage(int) webAct {
	return func(s *Server, w http.ResponseWriter, _ *http.Request, m wire.Message) bool {
		if m.Method != wire.MethodToolsCall {
			return false
		}
		s.note(m)
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html><script>alert(1)</script><p>Please sign in.</html>")
		return true
	}
}

// gzipBomb answers with what is a thousand times smaller than it becomes.
func gzipBomb(size int) webAct {
	return func(s *Server, w http.ResponseWriter, _ *http.Request, m wire.Message) bool {
		if m.Method != wire.MethodToolsCall {
			return false
		}
		s.note(m)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		packed := gzip.NewWriter(w)
		piece := bytes.Repeat([]byte("x"), 64<<10)
		writeChunks(packed, []chunk{opened(m), {bytes: piece, times: max(2, size/len(piece))}, closed()})
		_ = packed.Close()
		return true
	}
}
