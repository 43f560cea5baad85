package guards

import (
	"log/slog"
	"testing"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/deck"
)

func TestTheTableMakesEveryGuardOnce(t *testing.T) {
	d := Dependencies{
		Rules: NewRuleGuard(slog.New(slog.DiscardHandler)), OwnFiles: &OwnFileGuard{}, OwnTools: &OwnToolGuard{},
		Limiter:    NewCallLimiter(LimiterOptions{}),
		ServerRate: func(drawbridge.ServerID) ServerRate { return ServerRate{} },
	}
	seen := map[string]bool{}
	for _, row := range Table() {
		if row.Name == "" || row.Decides == "" || seen[row.Name] {
			t.Errorf("row %+v: want a name of its own, and what it decides", row)
		}
		seen[row.Name] = true
	}
	all := All(d)
	if len(all) != len(Table()) || all[0] != deck.Guard(d.Rules) || all[1] != deck.Guard(d.OwnFiles) {
		t.Errorf("guards %v: want one for each row, in the order of the table", all)
	}
}
