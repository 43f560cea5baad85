//go:build unix

package cards

import (
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/jobs"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

func newShellBench(t *testing.T) *bench {
	shared := NewJobs(jobs.LocalShell{Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}})
	b := newBench(t, map[string]any{JobsKey: shared})
	t.Cleanup(func() {
		if err := shared.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

func TestBash(t *testing.T) {
	b := newShellBench(t)
	b.file("sub/x", "")
	for args, want := range map[string]string{
		`{"command":"echo out; echo err >&2; exit 3"}`: "stdout:\nout\nstderr:\nerr\nstatus: exit 3\n",
		`{"command":"pwd","cwd":"sub"}`:                "stdout:\n" + b.dir + "/sub\nstatus: exit 0\n",
		`{"command":"printf no-newline"}`:              "stdout:\nno-newline\nstatus: exit 0\n",
		`{"command":"true"}`:                           "status: exit 0\n",
		`{"command":"  "}`:                             "command is empty.",
		`{"command":"true","timeoutMs":600001}`:        "timeoutMs must be from 1 to 600000.",
		`{"command":"true","timeoutMs":-1}`:            "timeoutMs must be from 1 to 600000.",
		`{"command":"true","cwd":"none"}`:              "Could not start the command: start /usr/bin/bash: its directory " + b.dir + "/none does not exist.",
		`"{\"command\":\"echo from a text\"}"`:         "stdout:\nfrom a text\nstatus: exit 0\n",
	} {
		got := b.call("bash", args)
		if strings.HasPrefix(want, "Could not start") {
			got, want = got[:15], want[:15]
		}
		if got != want {
			t.Errorf("%s: %q; want %q", args, got, want)
		}
	}
	caller := drawbridge.Caller{Session: "one"}
	result := b.result(caller, "bash", `{"command":"echo kept; sleep 1000","timeoutMs":100}`)
	text := rawjson.GetString(first(result), "text")
	if !strings.HasPrefix(text, "stdout:\nkept\nstatus: killed by Drawbridge after ") || !strings.HasSuffix(text, " (time limit)\n") ||
		string(rawjson.Get(result, "isError")) != "true" || rawjson.GetString(result, "structuredContent", "cause") != "time limit" {
		t.Errorf("%s", result)
	}
	if got := b.call("process", `{"action":"list"}`); got != "No jobs.\n" {
		t.Errorf("finished commands are jobs: %q", got)
	}
}

func TestProcess(t *testing.T) {
	b := newShellBench(t)
	b.want("process", `{"action":"start","command":"echo one; echo two; exec sleep 1000"}`, "Started job-1.\n")
	b.want("process", `{"action":"start"}`, "command is empty.")
	b.want("process", `{"action":"poll","id":"job-9"}`, `There is no job "job-9". List them with action list.`)
	b.want("process", `{"action":"kill"}`, "action must be start, list, poll or stop.")
	seen := ""
	for deadline := time.Now().Add(20 * time.Second); !strings.Contains(seen, "two") && time.Now().Before(deadline); {
		seen += b.call("process", `{"action":"poll","id":"job-1"}`)
	}
	if strings.Count(seen, "one\n") != 1 || !strings.Contains(seen, "two") || !strings.Contains(seen, "status: running for") {
		t.Errorf("polls: %q", seen)
	}
	// Another client of the principal sees the job, with all of its output; another principal does not.
	other := drawbridge.Caller{Session: "two"}
	if got := b.as(other, "process", `{"action":"poll","id":"job-1"}`); !strings.HasPrefix(got, "stdout:\none\n") {
		t.Errorf("%q", got)
	}
	if got := b.as(drawbridge.Caller{Principal: "eve"}, "process", `{"action":"list"}`); got != "No jobs.\n" {
		t.Errorf("%q", got)
	}
	if got := b.call("bg-process", `{"action":"list"}`); !strings.HasPrefix(got, "job-1    running for") {
		t.Errorf("%q", got)
	}
	if got := b.call("bg-process", `{"action":"poll","id":"job-1"}`); !strings.HasPrefix(got, "stdout:\none\ntwo\n") {
		t.Errorf("%q", got)
	}
	if got := b.call("process", `{"action":"stop","id":"job-1"}`); !strings.HasPrefix(got, "status: killed by Drawbridge after") ||
		!strings.HasSuffix(got, "(stopped)\n") {
		t.Errorf("%q", got)
	}
	b.want("process", `{"action":"list"}`, "No jobs.\n")
}
