//go:build bench

package bench

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"
)

// answersSetting bounds the memory of all answers in flight to 128 MiB.
const answersSetting = "[mcp]\nanswers_in_flight = 134217728\n"

// eventAnswers is the memory for six answers of 400 MB that come at once as events of a server on HTTP. They may be
// refused or passed on: the client reads what comes and keeps nothing.
func eventAnswers(t *testing.T) []line {
	const answers = 6
	bytes := 400 << 20
	if testing.Short() {
		bytes = 4 << 20
	}
	cmd := role(t, "byhand", "http")
	config, store := configure(t, server{Name: "hand", URL: start(t, cmd).url(t), Type: "http"})
	settle(t, config, answersSetting)
	p := start(t, serve(config, store, "--http", "127.0.0.1:0"))
	url := p.url(t)
	warm := connect(t, url)
	mounted(t, warm, toolCall("hand__markup", `{}`, "<b>"))
	pid := p.cmd.Process.Pid
	before := float64(status(t, pid, "VmRSS:")) / 1024
	r := toolCall("hand__events", fmt.Sprintf(`{"bytes":%d}`, bytes), "")
	var callers sync.WaitGroup
	said := make([]string, answers)
	for i := range said {
		c := connect(t, url)
		callers.Go(func() { said[i] = c.discard(r) })
	}
	callers.Wait()
	peak := float64(status(t, pid, "VmHWM:"))/1024 - before
	rest(5 * time.Second)
	after := float64(status(t, pid, "VmRSS:"))/1024 - before
	const control = "budget of 128 MiB"
	t.Logf("answers: %q", said)
	return []line{
		{what: "six answers of 400 MB as events at once: most memory over idle", subject: fmt.Sprintf("idle %.0f MB",
			before), control: control, value: peak, bar: 192, format: "%.0f MB"},
		{what: "six answers of 400 MB as events at once: memory over idle 5 s later", subject: fmt.Sprintf("first answer: %.60s", said[0]), control: control,
			value: after, bar: 20, format: "%.0f MB"},
	}
}

// discard makes a call, reads the answer without keeping it, and returns what came.
func (c *httpClient) discard(r request) string {
	c.id++
	c.body = fmt.Appendf(c.body[:0], `{"jsonrpc":"2.0","id":%s%s`, strconv.Itoa(c.id), r.body)
	res, err := c.send(r)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	begin := make([]byte, 400)
	n, _ := io.ReadFull(res.Body, begin) // an answer may be shorter
	more, err := io.Copy(io.Discard, res.Body)
	switch {
	case err != nil:
		return err.Error()
	case res.StatusCode != http.StatusOK:
		return res.Status
	case more == 0: // an error
		return string(begin[:n])
	}
	return fmt.Sprintf("%d MB", (int64(n)+more)>>20)
}
