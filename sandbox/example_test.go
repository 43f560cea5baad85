package sandbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/drawbridge-mcp/drawbridge/sandbox"
)

// A program calls sandbox.RunWorker first thing in main. Then a script can call the tools that the program offers it.
func Example() {
	weather := sandbox.HostFunc(func(_ context.Context, call sandbox.ToolCall) sandbox.Reply {
		if call.Name != "weather.now" {
			return sandbox.Reply{Err: fmt.Errorf("unknown tool %s", call.Name)}
		}
		return sandbox.Reply{Result: json.RawMessage(`{"structuredContent":{"degrees":21}}`)}
	})
	outcome, err := sandbox.Run(context.Background(), sandbox.Script{Code: `
import tools
days = [tools.weather.now(city=c)["degrees"] for c in ("Oslo", "Rome")]
print(sum(days) / len(days))
`}, weather)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Print(outcome.Stdout)
	// Output: 21.0
}

// A program whose main cannot call sandbox.RunWorker, such as a plugin or a test, runs scripts in its own process. It
// should trust who writes them: see Options.InProcess for what this mode does not promise.
func ExampleRunWith_inProcess() {
	double := sandbox.HostFunc(func(_ context.Context, call sandbox.ToolCall) sandbox.Reply {
		var arguments struct{ N int }
		if err := json.Unmarshal(call.Arguments, &arguments); err != nil {
			return sandbox.Reply{Err: err}
		}
		return sandbox.Reply{Result: fmt.Appendf(nil, `{"structuredContent":%d}`, 2*arguments.N)}
	})
	outcome, err := sandbox.RunWith(context.Background(), sandbox.Options{InProcess: true}, sandbox.Script{
		Code:   "import tools\nprint(tools.gather(*[tools.double.defer(n=n) for n in range(3)]))",
		Limits: sandbox.Limits{Memory: 64 << 20},
	}, double)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	fmt.Print(outcome.Stdout)
	// Output: [0, 2, 4]
}
