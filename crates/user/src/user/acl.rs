//! How an access control list is read.

/// `aclexplode` of an expression. It takes its argument out of compression once for every row that it returns, which is
/// tens of milliseconds for a thousand grantees; a list that was just put together is not compressed. It is put together
/// of two arrays, because what an array and one more element make is flattened anew for every row. The entry that is
/// appended for that is nobody's, and no privilege of anybody we ask about.
macro_rules! exploded {
    ($acl:literal) => {
        concat!(
            "pg_catalog.aclexplode(",
            $acl,
            " || ARRAY[pg_catalog.makeaclitem(4294967295, 4294967295, 'SELECT', false)])"
        )
    };
}
pub(crate) use exploded;
