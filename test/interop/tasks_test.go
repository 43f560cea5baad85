//go:build peers

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge/mcptest"
)

// taskScenarios are those of the suite for the tasks extension. None of them is scored.
var taskScenarios = []string{
	"tasks-lifecycle", "tasks-capability-negotiation", "tasks-wire-fields", "tasks-request-state-removal",
	"tasks-mrtr-input",
	"tasks-request-headers", "tasks-dispatch-and-envelope", "tasks-status-notifications", "tasks-required-task-error",
	"tasks-mrtr-composition",
}

// TestTasksConformance has the suite drive our tasks server: first by itself, which shows that it is a good one, then
// behind the gateway. Where names are qualified a shim gives the suite the names it knows.
func TestTasksConformance(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(mcptest.HTTPTasks())
	t.Cleanup(upstream.Close)
	gateway := func(t *testing.T, naming, tool string) string {
		url := serveHTTP(t, []row{{Name: "jobs", URL: upstream.URL}}, "--naming", naming)
		listed(t, &httpDoor{url: url, era: modern}, tool)
		return url
	}
	for name, open := range map[string]func(*testing.T) string{
		"direct": func(*testing.T) string { return upstream.URL },
		"bare":   func(t *testing.T) string { return gateway(t, "bare", "greet") },
		"qualified": func(t *testing.T) string {
			return unqualified(t, gateway(t, "qualified",
				"jobs__greet"), "jobs__")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			for _, scenario := range taskScenarios {
				t.Run(scenario, func(t *testing.T) { runScenario(t, url, scenario) })
			}
		})
	}
}

// TestTaskOfServerEverything calls the tool of npm's server-everything that is only to be had as a task: plainly in
// both generations, and as a task in the one that has the same form.
func TestTaskOfServerEverything(t *testing.T) {
	const name = "simulate-research-query"
	server := row{Name: "every", Command: node,
		Args: []string{module(t, "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"}}
	url := serveHTTP(t, []row{server}, "--naming", "bare")
	params := map[string]any{"name": name, "arguments": map[string]any{"topic": "bridges"}}
	reported := func(result json.RawMessage) {
		t.Helper()
		if !strings.Contains(string(result), "# Research Report: bridges") || strings.Contains(string(result),
			`"isError":true`) {
			t.Errorf("the result is %s", result)
		}
	}
	for _, e := range []era{modern, legacy} {
		reported(listed(t, &httpDoor{url: url, era: e}, name).call("tools/call", params))
	}
	c := enter(t, &httpDoor{url: url, era: legacy}, nil)
	params["task"] = map[string]any{"ttl": 60000}
	var created struct{ Task struct{ TaskID string } }
	decode(t, c.call("tools/call", params), &created)
	id := map[string]any{"taskId": created.Task.TaskID}
	var list struct {
		Tasks []struct{ TaskID, Status string }
	}
	decode(t, c.call("tasks/list", nil), &list)
	if n := len(list.Tasks); n == 0 || list.Tasks[n-1].TaskID != created.Task.TaskID {
		t.Errorf("%s is not the last of %+v", created.Task.TaskID, list.Tasks)
	}
	reported(c.call("tasks/result", id))
	var task struct{ TaskID, Status string }
	decode(t, c.call("tasks/get", id), &task)
	if task.TaskID != created.Task.TaskID || task.Status != "completed" {
		t.Errorf("the task is %+v", task)
	}
}

// runScenario runs one scenario of the suite's server leg. Its exit status is the verdict.
func runScenario(t *testing.T, url, scenario string) {
	t.Helper()
	ctx := limit(t, time.Minute)
	cmd := exec.CommandContext(ctx, node, module(t, "@modelcontextprotocol/conformance/dist/index.js"),
		"server", "--url", url, "--scenario", scenario)
	cmd.Dir, cmd.WaitDelay = t.TempDir(), time.Second
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		t.Fatalf("it did not end:\n%s", out)
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	}
}

// unqualified stands in front of a gateway and takes the prefix off the names of its tools, and puts it back where they
// are called.
func unqualified(t *testing.T, gateway, prefix string) string {
	t.Helper()
	target, err := url.Parse(gateway)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.URL.Path, r.Out.Host = target.Path, target.Host
			qualify(r.Out, prefix)
		},
		ModifyResponse: func(res *http.Response) error {
			if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
				return nil // no list comes as a stream
			}
			body, err := io.ReadAll(res.Body)
			body = bytes.ReplaceAll(body, []byte(`"name":"`+prefix), []byte(`"name":"`))
			res.Body = io.NopCloser(bytes.NewReader(body))
			res.ContentLength = int64(len(body))
			res.Header.Set("Content-Length", strconv.Itoa(len(body)))
			return err
		},
	}
	shim := httptest.NewServer(proxy)
	t.Cleanup(shim.Close)
	return shim.URL
}

// qualify puts the prefix before the name of a tool that is called, in the body and in the header.
func qualify(r *http.Request, prefix string) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	var m message
	if json.Unmarshal(body, &m) == nil && m.Method == "tools/call" {
		name, _ := m.Params["name"].(string)
		body = bytes.ReplaceAll(body, []byte(`"name":"`+name+`"`), []byte(`"name":"`+prefix+name+`"`))
		if r.Header.Get("Mcp-Name") == name {
			r.Header.Set("Mcp-Name", prefix+name)
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
}
