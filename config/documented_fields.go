package config

// A DocumentedField documents one member or setting of the configuration files. The reference page of the configuration
// is generated from the result of the function DocumentedFields.
type DocumentedField struct {
	// Section is "server" for a member of a row, and "auth" for a member of a row's auth. For a setting it is the table
	// of drawbridge.toml: "mcp", "mcp.shield", "tools", and so on.
	Section string
	Name    string
	// Type and Default are descriptions for people. Default is empty if the member has no default.
	Type, Default string
	// Doc is a description in one line.
	Doc string
}

// DocumentedFields returns every member of a row, then every member of its auth, then every setting. It reads the
// tables that the parser of the configuration uses.
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
