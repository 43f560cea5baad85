package admin

import (
	"context"

	"github.com/drawbridge-mcp/drawbridge/gateway"
)

// A WorkspaceReport is the result of InitWorkspace. Live describes the result in the running hub; it is empty if nothing
// was created.
type WorkspaceReport struct {
	gateway.NewWorkspace
	Live string `json:"live,omitempty"`
}

// InitWorkspace creates the workspace, unless it exists, and makes the running hub open it.
func (r *Service) InitWorkspace(ctx context.Context) (WorkspaceReport, error) {
	var report WorkspaceReport
	err := r.recordAction(gateway.AdminAction{Command: "workspace init"}, func() (err error) {
		report.NewWorkspace, err = gateway.CreateWorkspace(ctx, r.o.Gateway)
		return err
	})
	if err != nil || r.o.ReloadServers == nil {
		return report, err
	}
	report.Live, err = r.o.ReloadServers(ctx)
	return report, err
}
