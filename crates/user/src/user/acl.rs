//! Reads access control lists.

/// `aclexplode` of an expression. It decompresses its argument for every row that it returns, which takes tens of
/// milliseconds for a thousand grantees; a list that was just concatenated is not compressed. It is concatenated from
/// two arrays, because an array with one appended element is flattened again for every row. The entry that is appended
/// for that has no relevant grantee or privilege.
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
