package hub

import (
	"context"
	"encoding/json"
	"os"

	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/admin"
	"github.com/drawbridge-mcp/drawbridge/internal/command"
)

// An ApprovalAnswer is the answer to a call that waits for approval.
type ApprovalAnswer struct {
	ID    string `json:"id"`
	Allow bool   `json:"allow"`
	// Scope is what is allowed beyond this call; the zero value allows this call once.
	Scope admin.GrantScope `json:"scope,omitzero"`
}

// Approve has the hub record the answer to a call that waits for approval. The error is ErrNoHub if no hub runs or the
// hub is too old, or the reason why the answer was not recorded.
func Approve(ctx context.Context, o Options, answer ApprovalAnswer) error {
	said := o.newHello(wantApprove)
	said.Approval = &answer
	var did callLine
	err := requestLine(ctx, o, said, connectTimeout, func(text []byte) error { return json.Unmarshal(text, &did) })
	switch {
	case isUnknownVerb(err):
		return errNoHub
	case err != nil:
		return err
	}
	return did.Fault.Decode()
}

// sendApprove serves the verb approve.
func (h *hub) sendApprove(ctx context.Context, said hello, l *lineConn) error {
	a := said.Approval
	if a == nil {
		return l.sendWelcome(0, invalidInputFault("read the request to the hub: approve needs an approval"))
	}
	if err := l.sendWelcome(os.Getpid(), nil); err != nil {
		return err
	}
	err := h.adminService().AnswerApproval(ctx, a.ID, a.Allow, a.Scope)
	line := callLine{Fault: command.EncodeFault(err)}
	if err == nil {
		line.Result = json.RawMessage("{}")
	}
	return l.writeJSON(line)
}

// adminService returns the service that answers approvals in the hub's store.
func (h *hub) adminService() *admin.Service {
	c := h.o.Config
	return admin.New(admin.Options{ConfigOptions: config.Options{Paths: c.Paths, Dir: c.Dir, LookupEnv: c.LookupEnv},
		Store: c.Store, CommandPrefix: "drawbridge mcp", AdminRecorder: c.AdminRecorder(), Gateway: c})
}
