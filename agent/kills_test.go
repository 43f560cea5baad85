package agent_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/agent"
)

const (
	// childVariable makes the test binary a child that runs a session in the directory that it names.
	childVariable = "AGENT_TEST_CHILD"
	// killedTurns is the number of turns of a killed session. Each fifth of them has a sub-agent.
	killedTurns = 30
)

// TestKilled kills a process at random points of a session with SIGKILL, and starts another one that continues it, until
// the session ends. Each turn is in the history once, and each effect of a tool happened at most once: exactly once,
// unless its outcome is on record as unknown.
func TestKilled(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed process has an exit code there, as any other")
	}
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	dir, unknown, sessions := t.TempDir(), 0, 0
	for n := 0; n < kills; {
		if runKilled(t, dir, 1+random.IntN(150), time.Duration(random.IntN(2000))*time.Microsecond) {
			n++
			continue
		}
		unknown += checkKilled(t, dir)
		sessions++
		dir = t.TempDir()
	}
	for runKilled(t, dir, 1<<30, 0) {
		t.Fatal("the child that was not killed did not end well")
	}
	unknown += checkKilled(t, dir)
	t.Logf("%d kills in %d sessions, %d calls whose outcome is unknown", kills, sessions+1, unknown)
}

// runKilled runs a child and kills it some time after so many steps. It reports whether the child was killed before it
// ended.
func runKilled(t *testing.T, dir string, steps int, after time.Duration) (killed bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command(self)
	child.Env = append(os.Environ(), childVariable+"="+dir)
	var problems strings.Builder
	child.Stderr = &problems
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	read := bufio.NewReader(out)
	for range steps {
		if _, err := read.ReadByte(); err != nil {
			break
		}
	}
	if steps < 1<<30 {
		<-time.After(after)
		_ = child.Process.Kill() // it may have ended
	}
	for err == nil {
		_, err = read.ReadByte()
	}
	switch ended := child.Wait(); {
	case ended == nil:
		return false
	case child.ProcessState.ExitCode() >= 0:
		t.Fatalf("the child ended with %v: %s", ended, problems.String())
	}
	return true
}

// checkKilled checks a session that ended, and returns the number of its calls whose outcome is unknown.
func checkKilled(t *testing.T, dir string) (unknown int) {
	t.Helper()
	h := openHistory(t, dir, "s")
	var turns []string
	prompts, summaries, open, certain := 0, 0, map[string]int{}, map[string]bool{}
	arguments := map[string]string{}
	for _, e := range entries(t, h) {
		key := e.Agent + " "
		switch e.Kind {
		case agent.PromptEntry:
			if e.Agent == "" {
				prompts++
			}
		case agent.ModelEntry:
			if e.Agent == "" {
				turns = append(turns, e.Message.Text())
			}
		case agent.SummaryEntry:
			summaries++
		case agent.CallEntry:
			open[key+e.Call.ID]++
			arguments[key+e.Call.ID] = string(e.Call.Arguments)
		case agent.ResultEntry:
			open[key+e.Result.CallID]--
			if e.Details.Unknown {
				unknown++
			} else if !e.Result.IsError && e.Result.Name == "effect" {
				certain[arguments[key+e.Result.CallID]] = true
			}
		}
	}
	var want []string
	for n := 1; n <= killedTurns; n++ {
		want = append(want, fmt.Sprint("turn ", n))
	}
	if want = append(want, "end"); !slices.Equal(turns, want) || prompts != 1 {
		t.Errorf("%d prompts, the turns are %q", prompts, turns)
	}
	for call, n := range open {
		if _, sent := arguments[call]; n > 0 || n < 0 && sent {
			t.Errorf("the call %q has %d results too few", call, n)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	effects := map[string]int{}
	for line := range strings.Lines(string(text)) {
		effects[strings.TrimSuffix(line, "\n")]++
	}
	for effect, n := range effects {
		if n != 1 {
			t.Errorf("the effect %s happened %d times", effect, n)
		}
	}
	for effect := range certain {
		if effects[effect] != 1 {
			t.Errorf("the effect %s is on record and did not happen", effect)
		}
	}
	if summaries == 0 {
		t.Error("the conversation was never condensed")
	}
	return unknown
}

// stepHistory writes a byte to standard output before and after each entry.
type stepHistory struct{ *agent.FileHistory }

func (h stepHistory) Append(ctx context.Context, e agent.Entry) error {
	step()
	defer step()
	return h.FileHistory.Append(ctx, e)
}

func step() { _, _ = os.Stdout.Write([]byte{'.'}) }

// runChild runs or continues the session, and returns the exit code of the process.
func runChild() int {
	dir := os.Getenv(childVariable)
	if err := continueSession(dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func continueSession(dir string) error {
	history, err := agent.OpenHistory(dir, "s")
	if err != nil {
		return err
	}
	tools := taskBox("effect")
	inner := tools.call
	tools.call = func(ctx context.Context, who agent.Identity, c drawbridge.ToolCall, update func(agent.CallUpdate)) (
		agent.CallOutcome, error) {
		if c.Name == "task" {
			return inner(ctx, who, c, update)
		}
		step()
		defer step()
		return textOutcome(strings.Repeat("result ", 100)), appendLine(filepath.Join(dir, "effects"), string(c.Arguments))
	}
	ctx := context.Background()
	s, err := agent.New(ctx, agent.Options{Model: &script{answer: killedModel,
		info: drawbridge.ModelInfo{Provider: "test", Name: "script", Window: 12_000}}, Tools: tools,
		History: stepHistory{history}})
	if err != nil {
		return err
	}
	var parts []drawbridge.MessagePart
	if s.Snapshot().Messages == 0 {
		parts = prompt("go")
	}
	if _, err := s.Run(ctx, parts, nil); err != nil && !errors.Is(err, agent.ErrNoPrompt) {
		return err
	}
	return history.Close()
}

func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(line + "\n")
	return errors.Join(err, file.Close())
}

// killedModel answers with the next turn: the greatest number in the calls or in the summary that it sees, plus one. It
// is a function of the request, so that each process goes on alike.
func killedModel(_ context.Context, _ int, r drawbridge.ModelRequest, _ func(drawbridge.ModelDelta)) (
	drawbridge.ModelResponse, error) {
	if strings.HasPrefix(r.Messages[0].Text(), "sub ") {
		if len(r.Messages) > 1 {
			return says("report"), nil
		}
		return calls(fmt.Sprintf(`effect {"sub":%q}`, r.Messages[0].Text())), nil
	}
	last := 0
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls() {
			var arguments struct{ Turn int }
			_ = json.Unmarshal(c.Arguments, &arguments)
			last = max(last, arguments.Turn)
		}
		for _, field := range strings.Fields(m.Text()) {
			if number, ok := strings.CutPrefix(field, `{"turn":`); ok {
				n, _ := strconv.Atoi(strings.TrimRight(number, `,"ab:}`))
				last = max(last, n)
			}
		}
	}
	if strings.HasPrefix(r.Instructions, "You write the summary") {
		return says(fmt.Sprintf(`up to {"turn":%d`, last)), nil
	}
	if last++; last > killedTurns {
		return says("end"), nil
	}
	all := []string{fmt.Sprintf(`effect {"turn":%d,"a":1}`, last), fmt.Sprintf(`effect {"turn":%d,"b":2}`, last)}
	if last%5 == 0 {
		all = append(all, fmt.Sprintf(`task {"turn":%d,"objective":"sub %d"}`, last, last))
	}
	answer := calls(all...)
	for i := range answer.Message.Parts {
		answer.Message.Parts[i].ToolCall.ID = fmt.Sprint("t", last, "-", i)
	}
	answer.Usage = drawbridge.ModelUsage{}
	answer.Message.Parts = append(answer.Message.Parts, drawbridge.MessagePart{Text: fmt.Sprint("turn ", last)})
	return answer, nil
}
