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
