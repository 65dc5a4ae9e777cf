//! Which left picture belongs to which right one: by capture time, or by number.
