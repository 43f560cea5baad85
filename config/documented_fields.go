package config

// A DocumentedField is one member of a configuration file. The configuration reference is generated from these.
type DocumentedField struct {
	// Section is "server" for a member of a row, "auth" for one of its auth, else the table of drawbridge.toml: "mcp",
	// "mcp.shield", "tools", and so on.
	Section string
	Name    string
	// Type and Default are for people. Default is empty if the member has no default.
	Type, Default string
	// Doc is one line.
	Doc string
}

// DocumentedFields lists every member of a row and of its auth, then every setting, from the tables that the reader
// uses.
func DocumentedFields() []DocumentedField {
	var fields []DocumentedField
	for _, m := range rowMemberTable {
		fields = append(fields, DocumentedField{"server", m.name, m.typ, m.def, m.doc})
	}
	for _, m := range authMemberTable {
		fields = append(fields, DocumentedField{"auth", m.name, m.typ, "", m.doc})
	}
	for _, s := range settingTable {
		fields = append(fields, DocumentedField{s.section, s.name, s.typ, s.def, s.doc})
	}
	return fields
}
